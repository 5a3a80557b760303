"""`from rlhealth.testing import assert_healthy`: the public name of `rlhealth.integrations.testing`."""

from rlhealth.integrations.testing import assert_healthy

__all__ = ["assert_healthy"]

"""Notebooks: the tables that trainers print into them, the rows that are printed beside, the settings in their code."""

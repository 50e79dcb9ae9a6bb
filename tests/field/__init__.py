"""The ledger of the field: what towermigrate makes of real repositories, whose code stays outside of this project."""

"""Mutants of a room: how many of them do its quick tests notice?"""

"""Deepbore within other tools: import the module you need, each of which rests on a package of its own."""

"""deepbore inside other tools, a module for each; a module needs the package of its tool."""

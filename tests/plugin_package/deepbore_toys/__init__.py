"""Parts for deepbore from outside, one of each kind. Light to import: jobs load this package, too."""

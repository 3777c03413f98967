"""The dashboard: a local web server over run folders, journals that are being written, and shared studies.

It only reads journals, never unpickles, and needs no torch: `server` answers, `live` looks at the runs once a second,
`following` reads what is new of a journal, `runs` finds and names them, `content` makes the sections of their pages,
`commands` passes on what a reader asks for, `security` decides who may.
"""

"""Problems and plans as files: MiniMalloc's CSV and our JSON.

May import: problem, banks. Start with `by_name`, which reads and writes by a file's name; `minimalloc_csv` and
`json_format` hold a format each; `text` has the errors that name file and line, and writes that happen whole or not.
"""

"""Parameter files: what they hold, reading and checking them, finding, fetching and writing them.

Read in this order:

    verifying_key, params_file  the formats of `.vk` and `.params`; reading them
    watched_file                a large file that stays open, and may end early or change meanwhile
    manifest, development       what is published; the mark of what is not
    locate, fetch               where files lie; how to get the published ones
    checked                     what was found out about large files, so that it is found out once
    writer                      writing all files of a set, or none

Words: the *key* is the verifying key, a *section* one list of points in `.params`, a *stem* the name of a set
of parameter files without its ending, the *mark* the file that declares parameters to be development ones.
Of the rest of this floor it needs single points (`encoding`) and errors of files (`files`) only.
"""

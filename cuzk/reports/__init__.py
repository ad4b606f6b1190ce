"""What commands report, as plain data: strings, numbers and lists, which print as text and go into JSON.

machine       `doctor`: what this machine has, and what cuzk uses of it
parameters    `params list` and `doctor`: the parameter files that a search would find
plan          `prove --explain` and `doctor --plan`: what a proof would take
circuit       `sector inspect`, `circuit info`, `circuit digest`
"""

"""What `cuzk bench` measures: whole proofs as users make them, and what GPUs did meanwhile.

figures       figures from the TIMELINE lines of an engine
jobs          one input many times through an engine
partitions    a synthetic input's partitions one after another, each stage timed
"""

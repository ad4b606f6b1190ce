"""What `cuzk bench` measures: whole proofs as users make them, and what GPUs did meanwhile.

figures       figures from the TIMELINE lines of an engine
jobs          one input many times through an engine
peak_memory   the most memory of the host that this process held
partitions    a synthetic input's partitions one after another, each stage timed
"""

"""The specification: what is claimed, in definitions only.

Read in this order: arithmetic, mesh, states, modes, layouts, collectives, training, schedule,
placement, strategies, derive, memory, communication, conditions, operators, semantics, words,
forms, verdict, match, reference; then the model axes: values, transformer, programs, distribute,
model_strategies, model_costs, pipeline, stages, checkpoints, compose, hierarchy, online_softmax;
space; and assumptions.

Every rule is written once, over plain arithmetic, so the same definition is evaluated with whole
numbers, fractions, NumPy arrays, SymPy symbols and Z3 terms.
"""

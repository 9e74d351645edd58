"""Models, and training them on a single device.

In order: states, training, values, opaque, transformer, custom, parts, layers, online_softmax,
differences, profiles.
"""

"""The parts of the demo agent; ``swarm/demo_agent.py`` is the program."""

"""The protocol by which learners are compared: final policy, greedy, 100 fresh episodes, five seeds."""

"""What an epsilon means for the people in a table: influence, indicator, choice.

Nearly everything here is computed from rows, without noise. It is for the controller of
the data only, and carries a claim that says so.
"""

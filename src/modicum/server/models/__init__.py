"""The form of answers, for the OpenAPI description.

Answers are the documents of `workspace.documents` and `to_dict`, written as they are:
nothing is checked or changed on the way out. Tests hold them against these forms.
"""

"""From the text of a query to a `Query`: anything unknown is refused.

sqlglot splits the text into tokens and builds a tree; then the tree is read by lists of
what is allowed where. As a parser may drop what it understands, every token must be
accounted for as well: an unused token is refused.
"""

from modicum.query.parser.lexer import line_comments
from modicum.query.parser.query import parse_query
from modicum.query.parser.syntax_tree import TEXT_MAX

__all__ = ["TEXT_MAX", "line_comments", "parse_query"]

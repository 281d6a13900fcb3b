"""From the text of a query to a `Query`: what is not known is refused.

The text is cut into tokens and made into a tree by sqlglot; then the tree is read by
lists of what may stand where. As a parser may drop what it understands, every token
must be accounted for as well: one that nothing was made of is refused.
"""

from modicum.query.parser.lexer import line_comments
from modicum.query.parser.query import parse_query
from modicum.query.parser.syntax_tree import TEXT_MAX

__all__ = ["TEXT_MAX", "line_comments", "parse_query"]

"""The article's other systems under the same probes, in code of our own, one module each.

``drain`` is the in-process drain and its successor, ``policies`` each audit-failure policy with an
effect that can be rolled back and one that cannot, ``submission`` the loss of a response. They do
what the article and what it cites say of those systems, and are not them; where nothing is said,
"our choice" marks the rule.
"""

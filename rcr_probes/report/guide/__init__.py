"""The bilingual guide to a folder of evidence, and the two pages that it becomes."""

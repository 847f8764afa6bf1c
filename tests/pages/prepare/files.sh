# The Python files on pages of tutorials; arguments are the names of the pages.
python - "$@" <<'P'
import re
import sys

for page in sys.argv[1:]:
    text = open(f"docs/tutorials/{page}.md", encoding="utf-8").read()
    for name, code in re.findall(r"file: (\S+) --.\n```python\n(.*?)```", text, re.S):
        open(name, "w").write(code)
P

"""The commands in the ```console blocks of documents, and what is printed behind them: the lines after
"$ " are commands, a line "..." stands for any lines, "$ echo $?" shows the status of the one before."""

import re


class Example:
    """A command of a document, what is printed behind it, and its exit status."""

    def __init__(self, command, place):
        self.command, self.place, self.printed, self.status = command, place, "", 0
        self.interrupt = ""  # the progress line when it is interrupted


def blocks_of(document, language):
    """(number of its first line, text) of each block of code."""
    text = document.read_text()
    for match in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.M | re.S):
        yield text.count("\n", 0, match.start(1)) + 1, match.group(1)


def examples_of(document):
    examples = []
    for first, block in blocks_of(document, "console"):
        asked = None  # the example whose status is being shown
        for number, line in enumerate(block.splitlines(), first):
            if line == "$ echo $?":
                asked = examples[-1]
            elif asked:
                asked.status, asked = int(line), None
            elif line.startswith("$ "):
                examples.append(Example(line[2:], f"{document.name}:{number}"))
            elif line.endswith("^C"):
                examples[-1].interrupt = line.removesuffix("^C")
            else:
                examples[-1].printed += line + "\n"
    return examples


def pattern_of(printed):
    """A pattern for the text, in which a line "..." stands for any lines."""
    return re.compile("".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n"
                              for line in printed.splitlines()))

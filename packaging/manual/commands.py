"""Commands and options of a program, as its own --help prints them: manual pages and completions come from these."""

import dataclasses
import os
import re
import subprocess

# CLI11 prints names in a column of this width, and the description behind it or on the next line.
COLUMN = 30
# Commands have commands, and those have none.
DEPTH_MAX = 3


@dataclasses.dataclass
class Option:
    """An option, or a positional argument, whose `names` are then one word without a dash."""

    names: list
    value: str
    text: str
    default: str = ""
    required: bool = False
    repeated: bool = False
    optional_value: bool = False

    def choices(self):
        """The words that the value is one of, where the description lists them: "auto, csv, json (...)"."""
        text = re.sub(r" ?\([^)]*\)", "", self.text)
        found = re.match(r"(?:(?:a list of|[a-z]+): )?((?:[a-z0-9-]+, )+[a-z0-9-]+)(?:$|\. |; )", text)
        listed = found.group(1).split(", ") if found else re.findall(r"(?:^|; )([a-z]+): ", text)
        return listed if self.value and self.default in listed else []


@dataclasses.dataclass
class Command:
    words: list
    text: str
    usage: str = ""
    positionals: list = dataclasses.field(default_factory=list)
    options: list = dataclasses.field(default_factory=list)
    commands: list = dataclasses.field(default_factory=list)
    # Lines behind the lists, by the paragraph.
    footer: list = dataclasses.field(default_factory=list)

    @property
    def name(self):
        return " ".join(self.words)

    def walk(self):
        """This command and all below it."""
        yield self
        for command in self.commands:
            yield from command.walk()


def rows_of(lines):
    """(name, description) of the lines of a list."""
    rows = []
    for line in lines:
        if line[:COLUMN].strip() == "":
            name, text = rows.pop()
            rows.append((name, f"{text} {line.strip()}".strip()))
        elif len(line) > COLUMN and line[COLUMN - 1] == " " and line[COLUMN] != " ":
            rows.append((line[:COLUMN].strip(), line[COLUMN:].strip()))
        else:
            rows.append((line.strip(), ""))
    return rows


def option_of(name, text):
    """An Option of a row, as "-o,--output FILE=- REQUIRED" or "--json{-}"."""
    words = name.split(" ")
    names, value = words[0], " ".join(words[1:])
    required = "REQUIRED" in value
    value = value.replace("REQUIRED", "").strip()
    repeated = value.endswith("...") or " ... " in f"{value} "
    value = value.replace("...", "").strip()
    value, _, default = value.partition("=") if not value.startswith("section.") else (value, "", "")
    value = re.sub(r"^INT:INT in \[(\d+) - (\d+)\]$", r"N", value)
    optional = re.fullmatch(r"(.+)\{(.*)\}", names)
    if optional:
        names, value = optional.group(1), "VALUE"
    return Option(names.split(","), value, text, default, required, repeated, bool(optional))


def help_of(program, words):
    """The lines that `PROGRAM WORDS --help` prints, in the same form on every machine."""
    environment = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "COLUMNS": "80"}
    said = subprocess.run([program, *words, "--help"], env=environment, check=True, capture_output=True, text=True,
                          timeout=60)
    return said.stdout.rstrip("\n").splitlines()


def parse(lines, words):
    """A Command out of its help, without the commands below it but for their rows: (command, rows)."""
    command, sections, section = Command(words, ""), {}, None
    for line in lines:
        heading = re.fullmatch(r"(positionals|options|subcommands):", line.lower())
        if line.startswith("Usage: "):
            command.usage = line.removeprefix("Usage: ").strip()
            section = "usage"
        elif section is None:
            command.text = f"{command.text} {line}".strip()
        elif heading:
            section = heading.group(1)
        elif section == "footer" or line and not line.startswith(" "):
            section = "footer"
            command.footer.append(line)
        elif line:
            sections.setdefault(section, []).append(line)
    command.positionals = [option_of(*row) for row in rows_of(sections.get("positionals", []))]
    command.options = [option_of(*row) for row in rows_of(sections.get("options", []))]
    return command, rows_of(sections.get("subcommands", []))


def read(program, words):
    """The Command that `PROGRAM` (its path) is; `words` are its name and, below it, those of a command."""
    command, rows = parse(help_of(program, words[1:]), words)
    for name, text in rows:
        if len(words) > DEPTH_MAX:
            raise ValueError(f"{' '.join(words)}: commands are nested too deeply")
        below = read(program, [*words, name])
        below.text = text or below.text
        command.commands.append(below)
    return command

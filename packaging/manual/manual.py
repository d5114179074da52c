#!/usr/bin/python3
"""Writes the manual page of a program, in mdoc(7), out of what its --help prints.

    packaging/manual/manual.py PROGRAM DATE     PROGRAM is a path; DATE as "November 28, 2026"
"""

import pathlib
import re
import sys
import textwrap

import commands

# Text that no --help has: the other pages, and files that the program uses by itself.
SEE_ALSO = {
    "encore": ("encore-filter 1", "encore-sim 1", "encore.toml 5"),
    "encore-filter": ("encore 1", "encore-sim 1"),
    "encore-sim": ("encore 1", "encore-filter 1", "encore.toml 5"),
}
FILES = {"encore": [
    ("/etc/encore/encore.toml", "Configuration of the service that Debian's package installs."),
    ("/var/lib/encore", "Its state: the admission filter, and positions of purges."),
    ("/var/cache/encore", "Its directory for disks."),
    ("/var/log/encore", "Its access log."),
]}
LINE = 78


def literal(text):
    """Text that is shown as it is."""
    for character, escape in (("\\", "\\e"), ("-", "\\-"), ("`", "\\(ga"), ("^", "\\(ha"), ("~", "\\(ti")):
        text = text.replace(character, escape)
    return f"\\&{text}" if text[:1] in (".", "'") else text


def argument(text):
    """A word behind a macro: one argument, whatever it has."""
    text = literal(text).replace('"', "\\(dq")
    return f'"{text}"' if " " in text else text


def filled(text):
    """Sentences, each on lines of its own. Options in it keep their dashes."""
    lines = []
    for sentence in re.split(r"(?<=\w[.!?])\s+|(?<=[.!?][)\"'])\s+", text.strip()):
        sentence = re.sub(r"(?<![\w])--?[a-z][\w-]*", lambda found: found.group().replace("-", "\\-"),
                          sentence.replace("\\", "\\e"))
        lines += textwrap.wrap(sentence, LINE, break_long_words=False, break_on_hyphens=False)
    return [f"\\&{line}" if line[:1] in (".", "'") else line for line in lines]


def sentence(text):
    """With a capital, and a full stop at its end."""
    text = text[:1].upper() + text[1:] if re.match(r"[a-z]+[ ,]", text) else text
    return text if text.endswith((".", "!", "?")) else f"{text}."


def item(option):
    line = ".It "
    if option.names[0].startswith("-"):
        value = f" Ar {argument(option.value)}" if option.value and not option.optional_value else ""
        if option.optional_value:
            value = f" Ns Op = Ns Ar {argument(option.value)}"
        line += " , ".join(f"Fl {literal(name[1:])}" for name in option.names) + value
    else:
        line += f"Ar {argument(option.names[0])}"
    lines = [line + (" ..." if option.repeated else "")]
    lines += filled(sentence(option.text)) if option.text else []
    if option.required:
        lines.append("Required.")
    if option.default:
        lines += filled(f"Default: {option.default}.")
    return lines


def items(options):
    """A list of options; nothing where there are none."""
    if not options:
        return []
    return [".Bl -tag -width Ds", *(line for option in options for line in item(option)), ".El"]


def literal_block(lines):
    return [".Bd -literal", *(literal(line) for line in textwrap.dedent("\n".join(lines)).split("\n")), ".Ed"]


def footer_parts(footer):
    """(examples, exit status, other paragraphs): lines of examples, and texts."""
    examples, status, others, current = [], [], [], None
    for line in footer:
        found = re.match(r"(Examples?|Exit status|[Ee]xit codes[^:]*):\s*(.*)", line)
        if found and found.group(1).startswith("Example"):
            current = examples
        elif found:
            current = status
            line = found.group(2)
        elif line and not line.startswith(" ") and current in (None, examples):
            others.append([])
            current = others[-1]
        if line and not line.startswith("Example"):
            current.append(line)
    return examples, " ".join(status), [" ".join(lines) for lines in others]


def command_lines(command):
    """The subsection of a command below the program."""
    examples, status, others = footer_parts(command.footer)
    usage = command.usage.removeprefix(command.name).replace("[OPTIONS]", "").replace("SUBCOMMAND", "COMMAND").strip()
    lines = [f".Ss {literal(command.name)}", *filled(sentence(command.text.split(f": {command.name} ")[0]))]
    if usage:
        lines += [".Pp", "Usage:", f".Ic {literal(command.name)}", f".Ar {argument(usage)}"]
    lines += items(command.positionals + [option for option in command.options if "--help" not in option.names])
    for text in others:
        lines += [".Pp", *filled(sentence(text))]
    if status:
        lines += [".Pp", *filled(sentence(f"Exit status: {status}"))]
    if examples:
        lines += [".Pp", "Examples:", *literal_block(examples)]
    return lines


def page(program, date):
    """The manual page of a program, by its path."""
    name = pathlib.Path(program).name
    root = commands.read(program, [name])
    purpose = re.sub(rf"^{name}: ", "", root.text, flags=re.IGNORECASE).rstrip(".")
    examples, status, others = footer_parts(root.footer)
    lines = [f".Dd {date}", f".Dt {name.upper()} 1", ".Os", ".Sh NAME", f".Nm {name}",
             f".Nd {literal(purpose.split(', ')[0])}", ".Sh SYNOPSIS", ".Nm", ".Op Ar options"]
    if root.commands:
        lines.append(".Op Ar command")
    lines += [".Sh DESCRIPTION", *filled(sentence(root.text))]
    if root.commands:
        lines.append("Each command prints its own options with")
        lines.append(".Fl \\-help .")
    for text in others:
        lines += [".Pp", *filled(sentence(text))]
    lines += [".Sh OPTIONS", *items(root.options)]
    if root.commands:
        lines.append(".Sh COMMANDS")
        for command in list(root.walk())[1:]:
            lines += command_lines(command)
    if name in FILES:
        lines += [".Sh FILES", ".Bl -tag -width Ds"]
        for path, text in FILES[name]:
            lines += [f".It Pa {path}", text]
        lines.append(".El")
    if status:
        lines += [".Sh EXIT STATUS", *filled(sentence(status))]
    if examples:
        lines += [".Sh EXAMPLES", *literal_block(examples)]
    lines.append(".Sh SEE ALSO")
    also = SEE_ALSO.get(name, ())
    lines += [f".Xr {entry}{' ,' if entry != also[-1] else ''}" for entry in also]
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) != 3:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    sys.stdout.write(page(sys.argv[1], sys.argv[2]))
    return 0


if __name__ == "__main__":
    sys.exit(main())

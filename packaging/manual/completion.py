#!/usr/bin/python3
"""Writes the completion of a program for a shell, out of the options that its --help prints.

    packaging/manual/completion.py PROGRAM SHELL     PROGRAM is a path; SHELL is bash, zsh or fish
"""

import pathlib
import shlex
import sys

import commands

# Options whose value is a file though their help says TEXT.
FILE_OPTIONS = ("-o", "--config", "--html", "--outcomes", "--png", "--svg")


def kind_of(option):
    """"file", "directory", "word", or "" for an option without a value."""
    if not option.value or option.optional_value:
        return ""
    if option.value == "DIR":
        return "directory"
    is_file = option.value in ("FILE", "PATH") or any(name in FILE_OPTIONS for name in option.names)
    return "file" if is_file else "word"


def takes_files(command):
    return any(kind_of(positional) == "file" for positional in command.positionals)


def first_clause(text):
    return text.split(": ")[0].split("; ")[0].rstrip(".")


def bash_values(option):
    if option.choices():
        return f'COMPREPLY=($(compgen -W {shlex.quote(" ".join(option.choices()))} -- "$cur"))'
    return {"file": 'COMPREPLY=($(compgen -f -- "$cur"))', "directory": 'COMPREPLY=($(compgen -d -- "$cur"))',
            "word": "COMPREPLY=()"}[kind_of(option)]


def bash(root):
    function = "_" + root.name.replace("-", "_")
    valued, values, words = [], [], []
    for command in root.walk():
        for option in command.options:
            if kind_of(option):
                pattern = "|".join(shlex.quote(f"{command.name} {name}") for name in option.names)
                valued.append(pattern)
                values.append(f"    {pattern}) {bash_values(option)}; return ;;")
        names = [name for option in command.options for name in option.names]
        names += [below.words[-1] for below in command.commands]
        files = ' COMPREPLY+=($(compgen -f -- "$cur"))' if takes_files(command) else ""
        words.append(f"    {shlex.quote(command.name)}) COMPREPLY=($(compgen -W {shlex.quote(' '.join(names))} "
                     f'-- "$cur"));{files} ;;')
    below = "|".join(shlex.quote(command.name) for command in list(root.walk())[1:]) or "''"
    return "\n".join([
        f"# bash completion for {root.name}",
        f"{function}() {{",
        f"  local cur=${{COMP_WORDS[COMP_CWORD]}} command={root.name} i word skip=",
        "  compopt -o filenames 2>/dev/null",
        "  for ((i = 1; i < COMP_CWORD; i++)); do",
        "    word=${COMP_WORDS[i]}",
        '    if [[ -n $skip ]]; then skip=; continue; fi',
        '    case "$command $word" in',
        f"      {below}) command=\"$command $word\" ;;",
        *([f"      {'|'.join(valued)}) skip=yes ;;"] if valued else []),
        "    esac",
        "  done",
        '  [[ -z $skip ]] || case "$command ${COMP_WORDS[COMP_CWORD - 1]}" in',
        *values,
        "  esac",
        '  case "$command" in',
        *words,
        "  esac",
        "}",
        f"complete -F {function} {root.name}",
    ]) + "\n"


def zsh_text(text):
    for character in "\\[]:'":
        text = text.replace(character, "'\\''" if character == "'" else f"\\{character}")
    return text


def zsh_action(option):
    if option.choices():
        return f"({' '.join(option.choices())})"
    return {"file": "_files", "directory": "_files -/", "word": " "}[kind_of(option)]


def zsh_spec(option):
    """The specification of an option for _arguments."""
    text = zsh_text(first_clause(option.text))
    value = f":{zsh_text(option.value)}:{zsh_action(option)}" if kind_of(option) else ""
    star = "*" if option.repeated else ""
    if len(option.names) == 1:
        return [f"'{star}{option.names[0]}[{text}]{value}'"]
    others = f"({' '.join(option.names)})" if not option.repeated else star
    return [f"'{others}{name}[{text}]{value}'" for name in option.names]


def zsh_function(command):
    name = "_" + command.name.replace(" ", "__").replace("-", "_")
    specs = [spec for option in command.options for spec in zsh_spec(option)]
    if not command.commands:
        specs += ["'*:file:_files'"] if takes_files(command) else []
        return [f"{name}() {{", "  _arguments -s \\", *(f"    {spec} \\" for spec in specs[:-1]), f"    {specs[-1]}",
                "}", ""]
    lines = [f"{name}() {{", "  local state line", "  _arguments -C \\", *(f"    {spec} \\" for spec in specs),
             "    '1: :->command' '*:: :->arguments'", "  case $state in", "    command) _values command \\"]
    below = [f"'{each.words[-1]}[{zsh_text(first_clause(each.text))}]'" for each in command.commands]
    lines += [f"      {each} \\" for each in below[:-1]] + [f"      {below[-1]} ;;", "    arguments) case $line[1] in"]
    lines += [f"      {each.words[-1]}) {name}__{each.words[-1].replace('-', '_')} ;;" for each in command.commands]
    return [*lines, "    esac ;;", "  esac", "}", ""]


def zsh(root):
    lines = [f"#compdef {root.name}", ""]
    for command in root.walk():
        lines += zsh_function(command)
    return "\n".join([*lines, f'_{root.name.replace("-", "_")} "$@"']) + "\n"


def fish_condition(command):
    """True in fish where this command, and none of those below it, was given."""
    seen = [f"__fish_seen_subcommand_from {word}" for word in command.words[1:]]
    below = " ".join(each.words[-1] for each in command.commands)
    if below:
        seen.append(f"not __fish_seen_subcommand_from {below}")
    return "; and ".join(seen)


def fish_line(program, condition, rest, text):
    condition = f" -n {shlex.quote(condition)}" if condition else ""
    text = f" -d {shlex.quote(first_clause(text))}" if text else ""
    return f"complete -c {program}{condition}{rest}{text}"


def fish_option(option):
    rest = ""
    for name in option.names:
        rest += f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}"
    if option.choices():
        return f"{rest} -x -a {shlex.quote(' '.join(option.choices()))}"
    return rest + {"": "", "file": " -r -F", "directory": " -x -a '(__fish_complete_directories)'",
                   "word": " -x"}[kind_of(option)]


def fish(root):
    lines = [f"# fish completion for {root.name}", f"complete -c {root.name} -f"]
    for command in root.walk():
        condition = fish_condition(command)
        lines += [fish_line(root.name, condition, f" -a {each.words[-1]}", each.text) for each in command.commands]
        lines += [fish_line(root.name, condition, fish_option(option), option.text) for option in command.options]
        if takes_files(command):
            lines.append(fish_line(root.name, condition, " -F", ""))
    return "\n".join(lines) + "\n"


def main():
    shells = {"bash": bash, "zsh": zsh, "fish": fish}
    if len(sys.argv) != 3 or sys.argv[2] not in shells:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    program = sys.argv[1]
    sys.stdout.write(shells[sys.argv[2]](commands.read(program, [pathlib.Path(program).name])))
    return 0


if __name__ == "__main__":
    sys.exit(main())

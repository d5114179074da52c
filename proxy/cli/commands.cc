#include <array>

#include "proxy/cli/command.h"

namespace encore::cli {
namespace {

constexpr std::array kGroups = {
    OptionSpec{"config", "", "Read the configuration that is in force"},
    OptionSpec{"intercept", "",
               "List or clear clients that refused the certificate of [intercept]"},
};

constexpr std::array kProxyOptions = {
    OptionSpec{"--admin", "ADDRESS",
               "Admin listener of the proxy, as 127.0.0.1:3129 or unix:/run/encore/admin.sock; "
               "default: that of the configuration"},
    OptionSpec{"--token-file", "FILE", "Token of that listener; default: admin.token_file"},
    OptionSpec{"--json", "", "Print JSON, on a terminal too"},
    OptionSpec{"--text", "", "Print text, also if the output is no terminal"},
};

constexpr std::array kPurgeArguments = {
    OptionSpec{.name = "URL",
               .value = "URL",
               .text = "Purge these URLs, with all their variants, by http and https",
               .repeated = true}};
constexpr std::array kPurgeOptions = {
    OptionSpec{.name = "--tag",
               .value = "TAG",
               .text = "Purge responses with this tag; may be repeated",
               .repeated = true},
    OptionSpec{.name = "--prefix",
               .value = "URL",
               .text = "Purge URLs that begin so; may be repeated",
               .repeated = true},
    OptionSpec{"--all", "", "Purge everything"},
    OptionSpec{"--soft", "", "Make responses stale instead of removing them"},
    OptionSpec{"--dry-run", "", "Count what would be purged, and change nothing"},
};

constexpr std::array kDrainOptions = {
    OptionSpec{"--wait", "", "Return when the process has ended"},
};

constexpr std::array kExplainArguments = {
    OptionSpec{.name = "URL", .value = "URL", .text = "URL of the request", .required = true}};
constexpr std::array kExplainOptions = {
    OptionSpec{
        .name = "--method", .value = "METHOD", .text = "Method of the request", .usual = "GET"},
    OptionSpec{
        .name = "--client", .value = "IP", .text = "Address of the client", .usual = "127.0.0.1"},
    OptionSpec{"--listener", "ADDRESS", "Address of the [[listen]] that receives it"},
    OptionSpec{.name = "--field",
               .value = "\"Name: value\"",
               .text = "Header field of the request; may be repeated",
               .repeated = true},
    OptionSpec{"--offline", "", "Use the configuration alone; do not ask the running proxy"},
};

constexpr std::array kTopOptions = {
    OptionSpec{.name = "--interval",
               .value = "SECONDS",
               .text = "Time between two reports, 1 to 3600",
               .usual = "2"},
    OptionSpec{"--count", "N",
               "End after so many reports; default: on a terminal never, else after one"},
    OptionSpec{.name = "--names",
               .value = "N",
               .text = "Hosts and clients of each table, at most 64",
               .usual = "10"},
};

constexpr std::array kLogOptions = {
    OptionSpec{"--follow", "", "Go on until the command is stopped; the default"},
    OptionSpec{"--count", "N", "End after so many records"},
    OptionSpec{.name = "--outcome",
               .value = "OUTCOME",
               .text = "Only requests with this outcome; may be repeated",
               .repeated = true},
    OptionSpec{.name = "--client",
               .value = "IP",
               .text = "Only requests of this client; may be repeated",
               .repeated = true},
    OptionSpec{.name = "--host",
               .value = "HOST",
               .text = "Only requests for this host; may be repeated",
               .repeated = true},
};

constexpr std::array kConfigGetArguments = {
    OptionSpec{"KEY", "KEY", "A key as cache.memory, a section as cache, or none for all"}};
constexpr std::array kConfigGetOptions = {
    OptionSpec{"--offline", "", "Read the configuration file; do not ask the running proxy"},
};

constexpr std::array kClearOptions = {
    OptionSpec{"--client", "IP", "Only refusals of this client address"},
    OptionSpec{"--host", "HOST", "Only refusals for this host"},
};

constexpr std::array kCompletionArguments = {
    OptionSpec{.name = "SHELL", .value = "SHELL", .text = "bash, zsh or fish", .required = true}};

constexpr std::array kCommandsOptions = {
    OptionSpec{"--markdown", "", "Print the lists of docs/COMMANDS.md"},
};

constexpr std::array kCommands = {
    CommandSpec{"status",
                "Print the state of the running proxy",
                {},
                {},
                "encore status\n"
                "encore --config /etc/encore.toml status --json\n",
                &run_status},
    CommandSpec{"purge", "Remove cached responses before they expire", kPurgeArguments,
                kPurgeOptions,
                "encore purge http://site.example/page\n"
                "encore purge --tag news --tag a12 --soft\n"
                "encore purge --prefix http://site.example/img/ --dry-run\n",
                &run_purge},
    CommandSpec{"reload",
                "Reload the configuration, and report the result",
                {},
                {},
                "encore reload\n"
                "encore --config /etc/encore.toml reload\n",
                &run_reload},
    CommandSpec{"drain",
                "Finish the requests in progress, and end the proxy",
                {},
                kDrainOptions,
                "encore drain\n"
                "encore drain --wait\n",
                &run_drain},
    CommandSpec{"upgrade",
                "Replace the running process by a new one, without a failed request",
                {},
                {},
                "encore upgrade\n"
                "encore --config /etc/encore.toml upgrade\n",
                &run_upgrade},
    CommandSpec{"explain",
                "Explain how a request would be handled: matching rule, cached variants, admission "
                "state. Asks the running proxy, or uses the configuration alone",
                kExplainArguments, kExplainOptions,
                "encore --config a.toml explain http://a.example/x.deb\n"
                "encore --config a.toml explain http://app.example/ --client 10.0.0.7 --field "
                "\"Cookie: a=1\"\n",
                &run_explain},
    CommandSpec{"top",
                "Show hit ratio, rates, latency, top hosts and top clients",
                {},
                kTopOptions,
                "encore top\n"
                "encore top --interval 5 --names 20\n"
                "encore top --json --count 1\n",
                &run_top},
    CommandSpec{"fleet",
                "List the nodes of the fleet, and the lag of purges",
                {},
                {},
                "encore fleet\n"
                "encore fleet --json\n",
                &run_fleet},
    CommandSpec{"log",
                "Print requests as they end",
                {},
                kLogOptions,
                "encore log --follow\n"
                "encore log --follow --client 10.0.0.7 --outcome first-request\n"
                "encore log --json --count 100\n",
                &run_log},
    CommandSpec{"config get", "Print keys with their values in force", kConfigGetArguments,
                kConfigGetOptions,
                "encore config get cache.memory\n"
                "encore config get admission\n"
                "encore --config a.toml config get listen.0.address --offline\n",
                &run_config_get},
    CommandSpec{"intercept list",
                "Print client, host, refusals, and the time left without decryption",
                {},
                {},
                "encore --config a.toml intercept list\n",
                &run_intercept_list},
    CommandSpec{"intercept clear",
                "Clear refusals, so that the hosts are decrypted again",
                {},
                kClearOptions,
                "encore --config a.toml intercept clear --host packages.example\n",
                &run_intercept_clear},
    CommandSpec{.path = "completion",
                .text = "Print the completion script of a shell",
                .arguments = kCompletionArguments,
                .options = {},
                .examples = "encore completion bash > /etc/bash_completion.d/encore\n"
                            "encore completion zsh > /usr/share/zsh/vendor-completions/_encore\n"
                            "encore completion fish > ~/.config/fish/completions/encore.fish\n",
                .run = nullptr,
                .asks_proxy = false},
    CommandSpec{.path = "commands",
                .text = "Print all commands with their options, as JSON",
                .arguments = {},
                .options = kCommandsOptions,
                .examples = "encore commands\n",
                .run = nullptr,
                .hidden = true,
                .asks_proxy = false},
};

}  // namespace

std::span<const CommandSpec> commands() { return kCommands; }
std::span<const OptionSpec> groups() { return kGroups; }
std::span<const OptionSpec> proxy_options() { return kProxyOptions; }

}  // namespace encore::cli

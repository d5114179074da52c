#include "proxy/ca/cli/install_lines.h"

#include <string_view>

namespace encore::ca {
namespace {

constexpr std::string_view kSystemBundle = "/etc/ssl/certs/ca-certificates.crt";
// Placeholder for a host if the authority names none.
constexpr const char* kSomeHost = "HOST";

class Lines {
 public:
  void about(std::string_view text) {
    text_ += text_.empty() ? "# " : "\n# ";
    text_ += text;
    text_ += '\n';
  }
  void line(const std::string& text) { text_ += text + "\n"; }
  std::string text() && { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace

std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string install_lines(const std::string& certificate, const std::vector<std::string>& hosts) {
  const std::string file = shell_word(certificate);
  const std::vector<std::string> named =
      hosts.empty() ? std::vector<std::string>{kSomeHost} : hosts;
  Lines lines;
  lines.about("Debian, Ubuntu: apt, curl, wget, git, Go, and others with the system's list");
  lines.line("sudo install -m 644 " + file + " /usr/local/share/ca-certificates/encore.crt");
  lines.line("sudo update-ca-certificates");
  lines.about("apt only, for these hosts");
  for (const std::string& host : named) {
    lines.line("echo " +
               shell_word("Acquire::https::" + host + "::CAInfo \"" + certificate + "\";") +
               " | sudo tee -a /etc/apt/apt.conf.d/90encore");
  }
  lines.about("curl, wget: for one command");
  lines.line("curl --cacert " + file + " https://" + named.front() + "/");
  lines.line("wget --ca-certificate=" + file + " https://" + named.front() + "/");
  lines.about("Node and npm: in addition to their own list");
  lines.line("export NODE_EXTRA_CA_CERTS=" + file);
  lines.about("pip, requests: the system's list, after the first two lines above");
  lines.line("export PIP_CERT=" + std::string(kSystemBundle) +
             " REQUESTS_CA_BUNDLE=" + std::string(kSystemBundle));
  lines.about("git only, for these hosts");
  for (const std::string& host : named) {
    lines.line("git config --global http.https://" + host + "/.sslCAInfo " + file);
  }
  lines.about("Go, without the system's list");
  lines.line("export SSL_CERT_FILE=" + std::string(kSystemBundle));
  lines.about("Java");
  lines.line("sudo keytool -importcert -noprompt -trustcacerts -cacerts -storepass changeit " +
             ("-alias encore -file " + file));
  lines.about("Docker, for images of these hosts");
  for (const std::string& host : named) {
    lines.line("sudo install -m 644 -D " + file + " /etc/docker/certs.d/" + host + "/ca.crt");
  }
  lines.about("Chromium, Chrome and others with NSS (package libnss3-tools)");
  lines.line("mkdir -p $HOME/.pki/nssdb");
  lines.line("certutil -d sql:$HOME/.pki/nssdb -A -t C,, -n encore -i " + file);
  return std::move(lines).text();
}

}  // namespace encore::ca

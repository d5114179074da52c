# Which Debian packages are needed for what, and how they get here. Sourced by ./dev.

build_packages=(
  g++ cmake ninja-build pkg-config
  libevent-dev libc-ares-dev libssl-dev libcrypt-dev libspdlog-dev libtomlplusplus-dev libcli11-dev nlohmann-json3-dev
  libxxhash-dev libboost1.81-dev libcurl4-openssl-dev zlib1g-dev libzstd-dev libbrotli-dev liblzma-dev
  libnghttp2-dev libre2-dev libhiredis-dev libjs-chart.js libxgboost-dev
)
test_packages=(
  catch2 nginx-light curl wget git python3 chromium apt-utils dpkg-dev openssl strace gnuplot-nox
  squid haproxy gpg gpg-agent golang-go prometheus gnutls-bin libnss3-tools nghttp2-client
  nghttp2-server python3-grpcio mandoc shellcheck systemd valgrind zsh
  fish cargo redis-server docker-registry skopeo slapd pebble lego dehydrated python3-distributed python3-jsonschema
  python3-yaml
)
# For the Python module of the laboratory; its plots and its notebook only with ./dev test --all.
test_packages+=(pybind11-dev python3-dev python3-numpy)
notebook_packages=(python3-matplotlib python3-nbclient python3-nbformat python3-ipykernel)
# Node comes from other places too; Debian's npm is taken only where there is none.
command -v npm >/dev/null || test_packages+=(npm)
clang_packages=(clang-19 libclang-rt-19-dev)
# The lint sees the benches, too.
bench_libraries=(libbenchmark-dev liburing-dev)
lint_packages=(clang-tidy-19 clang-format-19 git python3 pybind11-dev python3-dev "${bench_libraries[@]}")
package_packages=(debhelper dh-python dpkg-dev git lintian pybind11-dev python3 python3-dev)
bench_packages=("${bench_libraries[@]}" wrk haproxy nginx-light python3 strace)
wiki_packages=(
  mediawiki nginx-light php-fpm php-cli php-sqlite3 php-mbstring php-xml php-intl php-gd varnish
)
wordpress_packages=(
  wordpress wordpress-theme-twentytwentythree mariadb-server-core mariadb-client-core nginx-light php-fpm php-cli
  php-mysql php-mbstring php-xml php-gd varnish
)
disk_packages=(nginx-light trafficserver python3)
claim_packages=("${disk_packages[@]}" squid varnish gnuplot-nox)

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Wait for an installation by another process: the largest takes some minutes.
apt_lock_seconds=1200

# apt_get ARGUMENTS: as root, after other users of apt. apt waits for dpkg's locks if an option says so,
# but never for those of its lists and archives.
apt_get() {
  local said status end=$((SECONDS + apt_lock_seconds))
  said=$(mktemp)
  while true; do
    status=0
    as_root env LC_ALL=C DEBIAN_FRONTEND=noninteractive \
      apt-get -o DPkg::Lock::Timeout="$apt_lock_seconds" "$@" 2>&1 | tee "$said" >&2 ||
      status=${PIPESTATUS[0]}
    if [ "$status" = 0 ] || [ "$SECONDS" -ge "$end" ] ||
      ! grep -qE 'E: (Could not get lock|Unable to (lock|acquire))' "$said"; then
      break
    fi
    echo "./dev: waiting for another installation to end" >&2
    sleep 1
  done
  rm -f "$said"
  return "$status"
}

# A package may start its service when it is installed (nginx and haproxy do). Debian's way to say
# no is a policy-rc.d that exits with 101; it is there only while packages are installed, and an
# administrator's own is left alone. Why a runlevel is not enough: docs/decisions/0012.
install_without_services() {
  local policy=/usr/sbin/policy-rc.d status=0 ours=
  if [ ! -e "$policy" ]; then
    ours=yes
    trap 'as_root rm -f /usr/sbin/policy-rc.d' EXIT
    printf '#!/bin/sh\nexit 101\n' | as_root tee "$policy" >/dev/null
    as_root chmod 755 "$policy"
  fi
  apt_get install --yes --no-install-recommends -o Dpkg::Use-Pty=0 "$@" || status=$?
  if [ -n "$ours" ]; then
    as_root rm -f "$policy"
    trap - EXIT
  fi
  return "$status"
}

all_known() {
  local name
  for name in "$@"; do apt-cache show "$name" >/dev/null 2>&1 || return 1; done
}

# need_packages NAME...: installs those that are missing, and nothing else.
need_packages() {
  local installed missing=() name
  if ! command -v dpkg-query >/dev/null; then
    echo "./dev: this is not a Debian system; needed are the equivalents of: $*" >&2
    return 0
  fi
  installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null |
    awk '$2 == "installed" { print $1 }') || true
  for name in "$@"; do
    grep -qxF -- "$name" <<<"$installed" || missing+=("$name")
  done
  [ "${#missing[@]}" -gt 0 ] || return 0
  if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
    printf '%s\n' "./dev: packages are missing, and neither root nor sudo is there to install them." \
      "Ask an administrator for:" "  apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
  echo "./dev: installing ${missing[*]}" >&2
  # Package lists are fetched only where they do not know a package, or know one that has gone.
  if all_known "${missing[@]}" && install_without_services "${missing[@]}"; then return 0; fi
  apt_get update
  install_without_services "${missing[@]}"
}

# need_axe DIRECTORY: what checks a page for those who cannot see or point; its test is left out where
# npm's registry is out of reach.
axe_version=4.14.1
need_axe() {
  [ -e "$1/node_modules/axe-core/axe.min.js" ] && return 0
  mkdir -p "$1"
  npm install --prefix "$1" --no-save --no-audit --no-fund --silent "axe-core@$axe_version" >&2 ||
    echo "./dev: no axe-core: the live page is not checked for accessibility" >&2
}

# unpack_package NAME DIRECTORY: unpacks a package into DIRECTORY/NAME, if it conflicts with another that
# is needed.
unpack_package() {
  local to=$2/$1
  [ -e "$to/usr" ] && return 0
  mkdir -p "$to"
  (cd "$to" && apt-get download "$1" >&2 && dpkg-deb -x "$1"_*.deb . && rm -f "$1"_*.deb) ||
    echo "./dev: no $1: it is left out" >&2
}

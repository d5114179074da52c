#!/bin/sh
# Gets the certificate of acme.toml with lego, and renews it when 30 days are left. Run it daily as
# encore's user: the key is then a file of that user alone. encore takes new files by itself.
set -eu
umask 077
home=/var/lib/encore
name=www.example.com
mkdir -p "$home/acme"
for kind in crt key; do
  ln -sf "lego/certificates/$name.$kind" "$home/www.$kind"
done
set -- --accept-tos --email "admin@$name" --path "$home/lego" --domains "$name" \
  --http --http.webroot "$home/acme"
if [ -e "$home/www.crt" ]; then
  exec lego "$@" renew --days 30
fi
exec lego "$@" run

#!/bin/sh
# Gets the certificate of acme.toml with dehydrated, and renews it when 30 days are left. Run it daily
# as encore's user: the key is then a file of that user alone. encore takes new files by itself.
set -eu
umask 077
home=/var/lib/encore
name=www.example.com
mkdir -p "$home/acme/.well-known/acme-challenge" "$home/dehydrated"
cat >"$home/dehydrated/config" <<END
BASEDIR=$home/dehydrated
WELLKNOWN=$home/acme/.well-known/acme-challenge
CONTACT_EMAIL=admin@$name
RENEW_DAYS=30
END
ln -sf "dehydrated/certs/$name/fullchain.pem" "$home/www.crt"
ln -sf "dehydrated/certs/$name/privkey.pem" "$home/www.key"
set -- --config "$home/dehydrated/config"
dehydrated "$@" --register --accept-terms
exec dehydrated "$@" --cron --domain "$name"

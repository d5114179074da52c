"""users_helper: logins that a program checks, among them helpers of Debian's squid package."""

import base64
import pathlib
import subprocess
import unittest

from client import get
from harness import Case, clean_environment, eventually, free_port, need_program
from origin import Origin, fresh

SQUID = pathlib.Path("/usr/lib/squid")
# Made by: openssl passwd -apr1 -salt tZ8kWhlR secret
APR1 = "$apr1$tZ8kWhlR$fWDJ0jl9TJ5HrUOU.2Nt/1"
# Answers by the password.
HELPER = """#!/bin/sh
echo started >>"$1/log"
while read -r name password; do
  echo "$name" >>"$1/log"
  case $password in
    right) echo OK ;;
    broken) echo "no directory for $name" ;;
    unsure) echo BH "no directory for $name" ;;
    *) echo ERR ;;
  esac
done
"""
SLAPD = """
include /etc/ldap/schema/core.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile {dir}/slapd.pid
database mdb
directory {dir}/db
suffix "dc=example"
rootdn "cn=admin,dc=example"
rootpw admin
"""
PEOPLE = """dn: dc=example
objectClass: dcObject
objectClass: organization
o: example
dc: example

dn: cn=ann,dc=example
objectClass: person
cn: ann
sn: ann
userPassword: secret
"""


def login(name, password, field="Proxy-Authorization"):
    return [(field, "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode())]


def squid_helper(name):
    if not (SQUID / name).exists():
        raise unittest.SkipTest(f"{SQUID / name} is not installed")
    return str(SQUID / name)


class Helper(Case):
    def setUp(self):
        super().setUp()
        self.origin = Origin(self, default=fresh("page"))

    def proxy(self, *command, **listen):
        encore = self.encore(start=False)
        encore.sections["listen"][0].update(users_helper=[str(each) for each in command], **listen)
        encore.start()
        return encore

    def own(self, **listen):
        """encore with the helper above."""
        script = self.directory / "helper"
        script.write_text(HELPER)
        script.chmod(0o700)
        return self.proxy(script, self.directory, **listen)

    def asked(self):
        log = self.directory / "log"
        return log.read_text().splitlines() if log.exists() else []

    def status(self, encore, name, password):
        return get(encore.port, self.origin.url("/page"), fields=login(name, password)).status


class Logins(Helper):
    def test_right_wrong_and_none(self):
        encore = self.own()
        self.assertEqual(407, get(encore.port, self.origin.url("/page")).status)
        self.assertEqual([], self.asked())
        self.assertEqual(200, self.status(encore, "ann", "right"))
        self.assertEqual(407, self.status(encore, "ann", "wrong"))
        self.assertEqual(407, self.status(encore, "", "right"))
        self.assertEqual(407, self.status(encore, "ann\0x", "right"))
        self.assertEqual(["started", "ann", "ann"], self.asked())
        # It is remembered.
        self.assertEqual(200, self.status(encore, "ann", "right"))
        self.assertEqual(3, len(self.asked()))
        self.assertEqual("ann", encore.access_records(1)[-1]["user"])

    def test_a_program_that_cannot_say_is_503_and_no_wrong_password(self):
        encore = self.own()
        for _ in range(30):  # more than the wrong ones of a minute
            answer = get(encore.port, self.origin.url("/page"), fields=login("ann", "broken"))
            self.assertEqual(503, answer.status)
        self.assertEqual(200, self.status(encore, "ann", "right"))
        self.assertIn("its answer is neither OK, ERR nor BH", encore.output())
        self.assertNotIn("no directory", encore.output())
        # As Squid 5's program for LDAP answers a wrong password.
        self.assertEqual(407, self.status(encore, "ann", "unsure"))

    def test_one_that_is_killed_is_started_again(self):
        encore = self.own()
        self.assertEqual(200, self.status(encore, "ann", "right"))
        found = subprocess.run(["pgrep", "-P", str(encore.process.pid), "helper"],
                               stdout=subprocess.PIPE, check=True, timeout=60).stdout.split()
        self.assertEqual(1, len(found))
        subprocess.run(["kill", "-9", found[0]], check=True, timeout=60)
        self.assertEqual(200, self.status(encore, "bob", "right"))
        self.assertEqual(2, self.asked().count("started"))

    def test_nothing_is_left_when_it_ends(self):
        encore = self.own()
        self.assertEqual(200, self.status(encore, "ann", "right"))
        encore.stop()
        self.assertNotEqual(0, subprocess.run(["pgrep", "-f", f"{self.directory}/helper"],
                                              stdout=subprocess.PIPE, timeout=60).returncode)

    def test_the_configuration_is_checked(self):
        for command, said in (
                (["/no/such/program"], "/no/such/program: cannot be run: No such file"),
                (["helper"], "helper: accepted: an absolute path of a program")):
            encore = self.encore(start=False)
            encore.sections["listen"][0].update(users_helper=command)
            encore.write_config()
            ended = subprocess.run([encore.program, "--config", encore.config_path,
                                    "--check-config"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, timeout=60, env=clean_environment())
            self.assertEqual(1, ended.returncode)
            self.assertIn(said, ended.stderr.decode())


class OfSquid(Helper):
    def test_a_file_of_passwords(self):
        program = squid_helper("basic_ncsa_auth")
        users = self.directory / "users"
        users.write_text(f"ann:{APR1}\n")
        encore = self.proxy(program, users)
        self.assertEqual(200, self.status(encore, "ann", "secret"))
        self.assertEqual(407, self.status(encore, "ann", "wrong"))
        self.assertEqual(407, self.status(encore, "bob", "secret"))

    def test_a_directory(self):
        program = squid_helper("basic_ldap_auth")
        slapd, slapadd = need_program("slapd", "slapadd")
        port = free_port()
        (self.directory / "db").mkdir()
        (self.directory / "slapd.conf").write_text(SLAPD.format(dir=self.directory))
        (self.directory / "people.ldif").write_text(PEOPLE)
        self.run_client([slapadd, "-f", self.directory / "slapd.conf", "-l",
                         self.directory / "people.ldif"])
        self.start([slapd, "-d", "0", "-f", self.directory / "slapd.conf", "-h",
                    f"ldap://127.0.0.1:{port}"], port)
        encore = self.proxy(program, "-b", "dc=example", "-u", "cn", "-H",
                            f"ldap://127.0.0.1:{port}")
        self.assertEqual(200, self.status(encore, "ann", "secret"))
        self.assertEqual(407, self.status(encore, "ann", "wrong"))
        self.assertEqual(407, self.status(encore, "ann", ""))


if __name__ == "__main__":
    unittest.main()

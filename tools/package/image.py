"""A container image of the encore package, without a daemon: mmdebstrap takes libraries and authorities out of Debian's
packages, umoci writes the image. No shell and no package manager are in it; it runs as a user that is not root."""

import pathlib
import re
import shutil
import subprocess
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
USER = 65532
TEXTS = {
    "etc/passwd": (f"root:x:0:0:root:/:/usr/sbin/nologin\n"
                   f"encore:x:{USER}:{USER}:Encore:/var/lib/encore:/usr/sbin/nologin\n"),
    "etc/group": f"root:x:0:\nencore:x:{USER}:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
# Volumes that are mounted here belong to the user from the start.
OWNED = ("var/lib/encore", "var/cache/encore")


def output_of(*words):
    return subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout


def libraries(deb):
    """Packages that the program is linked with; systemd is for the service alone."""
    depends = output_of("dpkg-deb", "--field", deb, "Depends").split(",")
    return [re.split(r"[ (]", entry.strip())[0] for entry in depends if "systemd" not in entry]


def extract(deb, suite, tree, run):
    """Unpacks the package, what it is linked with and Debian's authorities: those of the suite's last update."""
    tar = tree.parent / "packages.tar"
    run(["mmdebstrap", "--variant=extract", f"--include={','.join([*libraries(deb), 'ca-certificates'])}",
         "--format=tar", suite, tar])
    tree.mkdir()
    run(["tar", "-x", "--exclude=./dev/*", "-C", tree, "-f", tar])
    run(["dpkg-deb", "--extract", deb, tree])


def linked_files(tree):
    """Files that the loader opens for the program, and the loader, as paths inside of `tree`."""
    loader = next(iter(sorted(tree.glob("lib*/ld-linux*.so.*"))), None) or next(tree.glob("usr/lib*/ld-linux*.so.*"))
    name = f"/{loader.relative_to(tree)}"
    said = output_of("chroot", tree, name, "--list", "/usr/bin/encore")
    return sorted({name, *re.findall(r"=> (/\S+) \(0x", said)})


def fill(tree, root, version):
    """Copies to `root` what the image has: the program, its libraries, its texts, and the authorities."""
    for path in ["/usr/bin/encore", *linked_files(tree)]:
        to = root / path[1:]
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(tree / path[1:], to)
        to.chmod(0o755)
    certificates = root / "etc/ssl/certs/ca-certificates.crt"
    certificates.parent.mkdir(parents=True)
    certificates.write_text("".join(path.read_text() for path in
                                    sorted((tree / "usr/share/ca-certificates/mozilla").glob("*.crt"))))
    for name, text in {**TEXTS, "etc/encore-release": f"{version}\n"}.items():
        (root / name).write_text(text)
    (root / "etc/encore").mkdir()
    shutil.copyfile(ROOT / "packaging/image/encore.toml", root / "etc/encore/encore.toml")
    shutil.copytree(tree / "usr/share/doc/encore", root / "usr/share/doc/encore",
                    ignore=lambda _, names: [name for name in names if name != "copyright"])
    for name in (*OWNED, "tmp"):
        (root / name).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)


def write_layer(root, layer, time):
    """A tar file of `root` that is the same for the same files, whenever it is written."""
    with tarfile.open(layer, "w", format=tarfile.GNU_FORMAT) as archive:
        for path in sorted(root.rglob("*")):
            name = str(path.relative_to(root))
            member = archive.gettarinfo(path, name)
            member.mtime = time
            member.uid = member.gid = USER if name in OWNED else 0
            member.uname = member.gname = ""
            with open(path, "rb") if member.isreg() else open("/dev/null", "rb") as content:
                archive.addfile(member, content)


def write_image(layer, out, version, time, run):
    """An OCI image layout with one layer, as a tar file."""
    layout = layer.parent / "layout"
    created = output_of("date", "--utc", f"--date=@{time}", "+%Y-%m-%dT%H:%M:%SZ").strip()
    image = f"{layout}:latest"
    run(["umoci", "init", "--layout", layout])
    run(["umoci", "new", "--image", image])
    run(["umoci", "raw", "add-layer", "--image", image, "--history.created", created, "--history.author", "",
         "--history.created_by", f"encore {version}", layer])
    run(["umoci", "config", "--image", image, "--no-history", "--created", created, "--author", "",
         "--config.user", f"{USER}:{USER}", "--config.entrypoint", "/usr/bin/encore",
         "--config.cmd", "--config", "--config.cmd", "/etc/encore/encore.toml",
         "--config.exposedports", "3128/tcp", "--config.workingdir", "/", "--config.stopsignal", "SIGTERM",
         "--config.env", "PATH=/usr/bin", "--config.label", "org.opencontainers.image.title=encore",
         "--config.label", f"org.opencontainers.image.version={version}",
         "--config.label", "org.opencontainers.image.licenses=Apache-2.0"])
    run(["umoci", "gc", "--layout", layout])
    run(["tar", "--sort=name", f"--mtime=@{time}", "--owner=0", "--group=0", "--numeric-owner", "--mode=u=rwX,go=rX",
         "-C", layout, "-cf", out, "."])


def make(deb, suite, work, out, time, run):
    """Writes the image of a package to the file `out`; `work` is an empty directory."""
    version = output_of("dpkg-deb", "--field", deb, "Version").strip()
    tree, root, layer = work / "tree", work / "root", work / "layer.tar"
    extract(deb, suite, tree, run)
    root.mkdir()
    fill(tree, root, version)
    write_layer(root, layer, time)
    write_image(layer, out, version, time, run)

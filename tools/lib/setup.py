"""Install the simulators if they are missing (`make setup`).

    python3 tools/lib/setup.py

Silent when they are there. It says in one line what it is about to install. Where it cannot, or
where GA2_SETUP=no forbids it, one line says what to install; that is no failure, since all but the
RTL works without the simulators.
"""

import paths

import os
import shutil
import sys

import cli
import hw
import proc

# A machine without a network must learn so in seconds, not minutes.
APT_GET = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-o", "Acquire::Retries=0",
           "-o", "Acquire::http::Timeout=20", "-o", "DPkg::Lock::Timeout=60"]
PACKAGES = hw.INSTALL.split("install ")[1].split()


def main(argv=None):
    if not hw.missing():
        return 0
    allowed = os.environ.get("GA2_SETUP") != "no"
    if allowed and shutil.which("apt-get") and may_install():
        print(f"installing with apt-get: {' '.join(PACKAGES)} (`GA2_SETUP=no` installs nothing)",
              flush=True)
        install()
        hw.version.cache_clear()
    if hw.missing():
        print(hw.not_checked())
    return 0


def may_install():
    """Whether we are root or become so without a password."""
    return not sudo() or bool(shutil.which("sudo")) and succeeds(["true"])


def install():
    """Try with the package lists as they are, then with fresh ones."""
    if not succeeds([*APT_GET, "install", "-y", *PACKAGES]):
        succeeds([*APT_GET, "update"])
        succeeds([*APT_GET, "install", "-y", *PACKAGES])


def succeeds(command):
    """Run a command as root; whether its exit status is 0."""
    status, _ = proc.execute([*sudo(), *command], cwd=cli.ROOT, timeout=None)
    return status == 0


def sudo():
    """What to put before a command that needs root."""
    return [] if os.geteuid() == 0 else ["sudo", "-n"]


if __name__ == "__main__":
    sys.exit(cli.run(main))

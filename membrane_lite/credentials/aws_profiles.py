"""The two files of the AWS command line: their texts in, profiles out. Pure.

    ~/.aws/credentials   [default], [work]             AWS_SHARED_CREDENTIALS_FILE names another one
    ~/.aws/config        [default], [profile work],    AWS_CONFIG_FILE names another one
                         [sso-session corp]

A profile is what both files say of it; the credentials file wins. Source: docs.aws.amazon.com/sdkref/latest/guide,
"Shared config and credentials files".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from configparser import Error, RawConfigParser
from typing import Final, NamedTuple, Optional

from ..errors import MembraneError

Files = Callable[[str], Optional[str]]  # a path -> the text there; None where there is no such file
Settings = Mapping[str, str]

PROFILE_VARIABLES: Final = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE")
REGION_VARIABLES: Final = ("AWS_REGION", "AWS_DEFAULT_REGION")
DEFAULT_PROFILE: Final = "default"
NO_DEFAULT_SECTION: Final = "\0"  # configparser would give [DEFAULT]'s settings to every section


class Profiles(NamedTuple):
    """name -> settings. paths: of the files read, for messages."""

    profiles: Mapping[str, Settings]
    sso_sessions: Mapping[str, Settings]
    paths: tuple[str, str]


def variable(env: Mapping[str, str], *names: str) -> str | None:
    """The first of these variables that is not blank."""
    return next((value for value in (env.get(name, "").strip() for name in names) if value), None)


def home_path(env: Mapping[str, str], path: str) -> str:
    """`path`, its leading "~" replaced."""
    home = variable(env, "HOME", "USERPROFILE")
    return home + path[1:] if home and path.startswith("~") else path


def read_profiles(env: Mapping[str, str], files: Files) -> Profiles:
    """Raises MembraneError("auth") for a file that cannot be read, never showing a line of it."""
    config = home_path(env, variable(env, "AWS_CONFIG_FILE") or "~/.aws/config")
    credentials = home_path(env, variable(env, "AWS_SHARED_CREDENTIALS_FILE") or "~/.aws/credentials")
    sections, secrets = _sections(config, files), _sections(credentials, files)
    configured = _named(sections, "profile ")
    if DEFAULT_PROFILE in sections:
        configured.setdefault(DEFAULT_PROFILE, sections[DEFAULT_PROFILE])
    profiles = {name: {**configured.get(name, {}), **secrets.get(name, {})} for name in [*configured, *secrets]}
    return Profiles(profiles, _named(sections, "sso-session "), (config, credentials))


def profile_name(env: Mapping[str, str]) -> str:
    return variable(env, *PROFILE_VARIABLES) or DEFAULT_PROFILE


def region_of(env: Mapping[str, str], files: Files) -> str | None:
    """The region of the environment, else the profile's."""
    found = variable(env, *REGION_VARIABLES)
    return found or read_profiles(env, files).profiles.get(profile_name(env), {}).get("region")


def _named(sections: Mapping[str, Settings], prefix: str) -> dict[str, Settings]:
    """The sections called `prefix` and a name, by that name; it may stand in quotes."""
    return {
        section[len(prefix) :].strip().strip("\"'"): settings
        for section, settings in sections.items()
        if section.startswith(prefix)
    }


def _sections(path: str, files: Files) -> dict[str, Settings]:
    text = files(path)
    parser = RawConfigParser(strict=False, default_section=NO_DEFAULT_SECTION, delimiters=("=",), allow_no_value=True)
    try:
        parser.read_string(text or "")
    except Error as exc:  # its text quotes the line, which may hold a secret
        place = f"line {exc.lineno} of {path}" if hasattr(exc, "lineno") else path
        raise MembraneError(
            "auth", f"{place} cannot be read ({type(exc).__name__}); expected [sections] of key = value"
        ) from None
    return {
        " ".join(section.split()): {name: value.strip() for name, value in parser.items(section) if value}
        for section in parser.sections()
    }

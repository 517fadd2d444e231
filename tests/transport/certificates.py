"""Certificates for tests, made by the openssl command in a folder. skip()s where there is none."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
PASSWORD = "a-password-of-the-key"


class Certificates:
    """An authority of our own and what it signed. Paths are strings."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("openssl") is None:
            pytest.skip("no openssl command")
        self._folder = folder
        # As simple as people make them: no key identifiers, basic constraints not critical.
        (folder / "ca.cnf").write_text(
            "[req]\ndistinguished_name=dn\nx509_extensions=v3\n[dn]\n[v3]\nbasicConstraints=CA:TRUE\n"
        )
        self.ca = self._made("ca", ["-x509", "-days", "30", "-config", str(folder / "ca.cnf")], "/CN=Test CA")
        self.server = self.signed("server", "subjectAltName=DNS:localhost,DNS:secure.example,IP:127.0.0.1")
        self.client = self.signed("client", "extendedKeyUsage=clientAuth")
        self.self_signed = self._made("self", ["-x509", "-days", "30"], "/CN=127.0.0.1")
        self._run(
            ["ec", "-in", self.key(self.client), "-aes128", "-passout", f"pass:{PASSWORD}", "-out", self.locked_key]
        )

    @property
    def locked_key(self) -> str:
        """The client's key, encrypted with PASSWORD."""
        return str(self._folder / "locked.key")

    def key(self, certificate: str) -> str:
        return certificate.replace(".pem", ".key")

    def signed(self, name: str, extension: str, *, days: int = 30) -> str:
        request = self._made(name, [], f"/CN={name}", suffix=".csr")
        extensions = str(self._folder / f"{name}.ext")
        Path(extensions).write_text(extension)
        signed = str(self._folder / f"{name}.pem")
        issuer = ["-CA", self.ca, "-CAkey", self.key(self.ca), "-CAcreateserial", "-days", str(days)]
        self._run(["x509", "-req", "-in", request, *issuer, "-extfile", extensions, "-out", signed])
        return signed

    def server_context(self, certificate: str = "", *, client_ca: str = "") -> ssl.SSLContext:
        """For a server; with client_ca it asks for a client certificate."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate = certificate or self.server
        context.load_cert_chain(certificate, self.key(certificate))
        if client_ca:
            context.load_verify_locations(client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def _made(self, name: str, arguments: list[str], subject: str, suffix: str = ".pem") -> str:
        made = str(self._folder / (name + suffix))
        key = str(self._folder / (name + ".key"))
        self._run(["req", *KEY, "-nodes", "-keyout", key, "-out", made, "-subj", subject, *arguments])
        return made

    def _run(self, arguments: list[str]) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)

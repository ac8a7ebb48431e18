"""Certificates for tests: `srv cert --dev` makes the authority, openssl what that does not (RSA, clients, short lives)."""
import os
import subprocess

from srv_process import PATIENCE, run_to_end


class Certificates:
    """In FOLDER: ca.pem, cert.pem, key.pem of `srv cert --dev` for localhost, and for HOSTS."""

    def __init__(self, folder, *hosts):
        self.folder = folder
        status, output = run_to_end("cert", "--dev", "--out", folder, *["--host=" + host for host in hosts])
        if status != 0:
            raise AssertionError(output)
        self.ca, self.ca_key = self.path("ca.pem"), self.path("ca-key.pem")
        self.cert, self.key = self.path("cert.pem"), self.path("key.pem")

    def path(self, name):
        return os.path.join(self.folder, name)

    def _openssl(self, *args):
        done = subprocess.run(["openssl", *args], stdin=subprocess.DEVNULL, timeout=PATIENCE,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            raise AssertionError("openssl %s: %s" % (" ".join(args), done.stdout))
        return done.stdout

    def _validity(self, days):
        """OpenSSL 3.0 takes no dates, and makes what ends before it begins; 3.5 the other way round."""
        if days < 0 and "-not_after" in self._openssl("x509", "-help"):
            return ["-not_before", "20200101000000Z", "-not_after", "20200201000000Z"]
        return ["-days", str(days)]

    def make(self, name, *names, kind="ec", days=30, client=False, subject=None):
        """(certificate, key), signed by the authority: for servers called NAMES, or for a client. Less than 0 DAYS:
        it has expired."""
        cert, key, request, extensions = (self.path(name + end) for end in (".pem", ".key", ".csr", ".ext"))
        if kind == "rsa":
            self._openssl("genrsa", "-out", key, "2048")
        else:
            self._openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key)
        self._openssl("req", "-new", "-key", key, "-out", request, "-subj", subject or "/CN=" + (names or (name,))[0])
        with open(extensions, "w", encoding="ascii") as out:
            out.write("basicConstraints=CA:FALSE\nextendedKeyUsage=%s\n" % ("clientAuth" if client else "serverAuth"))
            if names:
                out.write("subjectAltName=%s\n" % ",".join("DNS:" + n for n in names))
        self._openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.ca_key, "-CAcreateserial",
                      *self._validity(days), "-extfile", extensions, "-out", cert)
        return cert, key

    def serial(self, cert):
        return self._openssl("x509", "-in", cert, "-noout", "-serial").strip().split("=")[1]

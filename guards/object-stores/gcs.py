"""A bucket of Google Cloud Storage for fenced.py."""

import google.api_core.exceptions
import google.auth.exceptions
import requests.exceptions

from fenced import Failed, Moved, Unknown

# Seconds to connect, and between two pieces of the answer.
TIMEOUT = (3, 5)


class Gcs:
    """`bucket` is google.cloud.storage.Client().bucket(name). Nothing is retried underneath (retry=None): a put that
    was sent again after a lost answer would meet itself and be told 412."""

    def __init__(self, bucket):
        self.bucket = bucket

    def read(self, name):
        """Content and version (its generation), or None."""
        blob = self.bucket.blob(name)
        try:
            data = blob.download_as_bytes(retry=None, timeout=TIMEOUT)
        except google.api_core.exceptions.NotFound:
            return None
        except ERRORS as error:
            raise Failed(f"{name} cannot be read: {error}") from error
        return data, int(blob.generation)

    def put(self, name, data, version):
        """Puts it if this version is still there; with None, if nothing is there (generation 0)."""
        try:
            self.upload(self.bucket.blob(name), data, version or 0)
        except (google.api_core.exceptions.PreconditionFailed, google.api_core.exceptions.Conflict) as error:
            raise Moved(str(error)) from error
        except google.api_core.exceptions.GoogleAPICallError as error:
            # 429 among them: one object takes about one write a second.
            raise (Unknown if (error.code or 500) >= 500 else Failed)(str(error)) from error
        except (google.auth.exceptions.GoogleAuthError, requests.exceptions.ConnectTimeout) as error:
            raise Failed(f"{name} was not sent: {error}") from error
        except requests.exceptions.RequestException as error:
            raise Unknown(f"{name} may have been put: {error}") from error

    def upload(self, blob, data, generation):
        """One request. Override it to set metadata, a KMS key and the like."""
        blob.upload_from_string(data, if_generation_match=generation, retry=None, timeout=TIMEOUT)

    def names(self, prefix):
        """The names of all objects that begin so, in order."""
        try:
            blobs = self.bucket.client.list_blobs(self.bucket, prefix=prefix, retry=None, timeout=TIMEOUT)
            return sorted(blob.name for blob in blobs)
        except ERRORS as error:
            raise Failed(f"{prefix} cannot be listed: {error}") from error


ERRORS = (
    google.api_core.exceptions.GoogleAPICallError,
    google.auth.exceptions.GoogleAuthError,
    requests.exceptions.RequestException,
)

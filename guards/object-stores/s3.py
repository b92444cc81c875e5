"""A bucket of S3 (or of a store that speaks its protocol and has conditional writes) for fenced.py."""

import botocore.config
import botocore.exceptions

from fenced import Failed, Moved, Unknown

# boto3 sends a put again by itself after a lost answer: the second then meets the first and is told 412, as if
# somebody else had written. One attempt, and what became of it is for commit to find out.
CONFIG = botocore.config.Config(retries={"total_max_attempts": 1}, connect_timeout=3, read_timeout=5)

# Raised before anything was sent.
NOT_SENT = (
    botocore.exceptions.EndpointConnectionError,
    botocore.exceptions.ConnectTimeoutError,
    botocore.exceptions.ProxyConnectionError,
    botocore.exceptions.NoCredentialsError,
    botocore.exceptions.ParamValidationError,
)


class S3:
    """`client` is boto3.client("s3", config=s3.CONFIG); `options` go into every put, such as ServerSideEncryption."""

    def __init__(self, client, bucket, **options):
        self.client, self.bucket, self.options = client, bucket, options

    def read(self, name):
        """Content and version (its ETag), or None."""
        try:
            got = self.client.get_object(Bucket=self.bucket, Key=name)
            return got["Body"].read(), got["ETag"]
        except self.client.exceptions.NoSuchKey:
            return None
        except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError) as error:
            raise Failed(f"{name} cannot be read: {error}") from error

    def put(self, name, data, version):
        """Puts it if this version is still there; with None, if nothing is there."""
        condition = {"IfMatch": version} if version else {"IfNoneMatch": "*"}
        try:
            self.client.put_object(Bucket=self.bucket, Key=name, Body=data, **condition, **self.options)
        except botocore.exceptions.ClientError as error:
            raise _answered(error) from error
        except NOT_SENT as error:
            raise Failed(f"{name} was not sent: {error}") from error
        except botocore.exceptions.BotoCoreError as error:
            raise Unknown(f"{name} may have been put: {error}") from error

    def names(self, prefix):
        """The names of all objects that begin so, in order."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        try:
            return [found["Key"] for page in pages for found in page.get("Contents", [])]
        except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError) as error:
            raise Failed(f"{prefix} cannot be listed: {error}") from error


def _answered(error):
    """412: another version is there. 409: another write was on its way at that moment. 404: what the condition asks
    for is gone. In all three nothing was put, and one must read and compare again."""
    status = error.response["ResponseMetadata"]["HTTPStatusCode"]
    if status in (409, 412) or error.response["Error"]["Code"] == "NoSuchKey":
        return Moved(str(error))
    return Unknown(str(error)) if status >= 500 else Failed(str(error))

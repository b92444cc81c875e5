"""An application that writes to object stores by the recipes of guards/object-stores, for tests.

Reads one request a line from standard input, as JSON, and answers each by one line. Requests run side by side. One
that says `pause` tells when it is about to put, and waits for the line {"go": ID}.
"""

import base64
import functools
import json
import random
import sys
import threading
import time

import boto3
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

import fenced
import gcs
import s3

BUCKET = "shop"
OUTPUT = threading.Lock()
GOING = {}


class Refusing(gcs.Gcs):
    """The server refuses what it gets, since the digest is not that of the data."""

    def upload(self, blob, data, generation):
        blob.md5_hash = WRONG_DIGEST
        super().upload(blob, data, generation)


WRONG_DIGEST = base64.b64encode(bytes(16)).decode()


@functools.cache
def s3_client(endpoint):
    keys = {"aws_access_key_id": "access", "aws_secret_access_key": "secret-of-a-test"}
    client = boto3.session.Session().client(
        "s3", endpoint_url=endpoint, region_name="us-east-1", config=s3.CONFIG, **keys)
    # The test loses the first bytes that come back after a put was sent: they are to be its answer, not a "100
    # Continue" that comes before the content has left.
    client.meta.events.register_last("before-call.s3", without_expect)
    return client


def without_expect(params, **_):
    params["headers"].pop("Expect", None)


@functools.cache
def gcs_client(endpoint):
    return storage.Client("shop", credentials=AnonymousCredentials(), client_options={"api_endpoint": endpoint})


CLIENTS = threading.Lock()


def store_of(request):
    with CLIENTS:
        if request["store"] == "s3":
            client = s3_client(request["endpoint"])
            return s3.S3(client, BUCKET, **({"ContentMD5": WRONG_DIGEST} if request.get("refuse") else {}))
        bucket = gcs_client(request["endpoint"]).bucket(BUCKET)
        return Refusing(bucket) if request.get("refuse") else gcs.Gcs(bucket)


def paused(store, number):
    """The same store, whose next put waits for a word."""
    put = store.put

    def waiting(*arguments):
        # One more small answer on the connection: the end of what was read before it has then arrived for sure.
        store.names("nothing/")
        answer({"id": number, "putting": True})
        GOING[number].wait()
        return put(*arguments)

    store.put = waiting
    return store


def unreadable(store):
    """The same store, from which nothing can be read."""

    def fail(name):
        raise fenced.Failed(f"{name} cannot be read")

    store.read = fail
    return store


def unconditional(store):
    """Broken: what was compared may be gone when the put arrives."""
    read, put = store.read, store.put
    store.read = lambda name: read(name)

    def late(name, data, _version):
        # Some are slower than others, so that one is overtaken.
        time.sleep(random.random() * 0.06)
        return put(name, data, (read(name) or (None, None))[1])

    store.put = late
    return store


def carry_out(request):
    store = store_of(request)
    if request.get("pause"):
        store = paused(store, request["id"])
    if request.get("unreadable"):
        store = unreadable(store)
    if request.get("unconditional"):
        store = unconditional(store)
    claim = (request.get("fence"), request.get("holder"))
    name, do = request["name"], request["do"]
    if do == "make_bucket":
        if request["store"] == "s3":
            store.client.create_bucket(Bucket=BUCKET)
        else:
            store.bucket.create()
        return None
    if do == "commit":
        write = fenced.Write(*request["write"]) if request.get("write") else None
        return fenced.commit(store, name, *claim, lambda _: request["value"], write).body
    if do == "raise":
        return fenced.raise_fence(store, name, *claim).body
    if do == "create":
        return fenced.create(store, name, *claim, request["part"], request["value"].encode())
    if do == "newest":
        return fenced.newest(store, name)
    if do == "read":
        found = fenced.read(store, name)
        return found.body if found else None
    if do == "version":
        return (store.read(name) or (None, None))[1]
    if do == "put":
        return store.put(name, request["value"].encode(), request.get("version"))
    raise ValueError(f"nothing is known to do for {do}")


def run(request):
    reply = {"id": request["id"]}
    try:
        reply["done"] = carry_out(request)
    except (fenced.Refused, fenced.Invalid, fenced.Failed, fenced.Moved, fenced.Unknown) as error:
        reply.update(error=type(error).__name__, text=str(error), write=getattr(error, "write", None))
    except Exception as error:
        reply.update(error="Bug", text=repr(error))
    answer(reply)


def answer(reply):
    with OUTPUT:
        print(json.dumps(reply), flush=True)


for line in sys.stdin:
    received = json.loads(line)
    if "go" in received:
        GOING[received["go"]].set()
        continue
    GOING[received["id"]] = threading.Event()
    threading.Thread(target=run, args=(received,), daemon=True).start()

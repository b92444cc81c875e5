"""Fences in an object store that puts an object on a condition (S3: s3.py, Google Cloud Storage: gcs.py).

    manifest = commit(store, "report/manifest", fence, holder, lambda body: {"newest": "part-7"})
    name = create(store, "report/parts", fence, holder, "part-7", data)

A manifest is one small object that says what counts. It carries the fence and the holder who wrote it last, and is
replaced by compare-and-swap: read, compare the fence, put on the condition that nothing was put in between. Whatever
a former holder still uploads is not in it. Fence and holder are FENCEDLEASE_FENCE and FENCEDLEASE_HOLDING.
"""

import json
import re
import secrets
from typing import NamedTuple

# How many writes a manifest remembers, so that one whose answer was lost is found in it.
REMEMBERED = 100
# How often somebody else's put may come between read and put before a commit gives up.
TRIES = 10


class Refused(Exception):
    """A newer fence was here, or another holder with this one: stop, and do not try again. Nothing was written."""


class Invalid(ValueError):
    """What cannot be a fence, a holder or a name. Nothing was sent."""


class Failed(Exception):
    """Nothing was written, for a reason that says nothing about the lease."""


class Unknown(Exception):
    """It may have been written, or may still be. Call commit again with this exception's `write`, or create again."""

    def __init__(self, why, write=None):
        super().__init__(why)
        self.write = write


class Moved(Exception):
    """Raised by a store: the condition did not hold, and nothing was put. commit and create handle it."""


class Write(NamedTuple):
    """One write, the same however often it is sent: its own id, and that of the write which it found."""

    id: str
    after: str | None


class Manifest(NamedTuple):
    """What lies in the store. `writes` has the newest write's id first. The ids are new for every write, so no two
    manifests have the same bytes: an ETag, which is a digest of them, never comes back (ABA)."""

    fence: int
    holder: str
    body: object
    writes: list

    def to_bytes(self):
        return json.dumps(self._asdict()).encode()


def read(store, name):
    """The manifest of this name, or None."""
    return _found(store, name)[0]


def commit(store, name, fence, holder, change, write=None):
    """Replaces the manifest's body by what `change` makes of the present one (None at first), and gives the manifest.

    `change` may be called more than once, and returns what JSON can hold. Raises Refused, Invalid, Failed, Unknown.
    """
    fence = parse(fence, holder)
    if write:
        # Its fate is open: no failure of this attempt says that nothing was written.
        try:
            return _commit(store, name, fence, holder, change, write)
        except Failed as error:
            raise Unknown(f"{name} may have been written before: {error}", write) from error
    return _commit(store, name, fence, holder, change, None)


def _commit(store, name, fence, holder, change, write):
    for _ in range(TRIES):
        met, version = _found(store, name)
        writes = met.writes if met else []
        if write and write.id in writes:
            return met
        # Before the fence is compared: a refusal says that nothing was written.
        if write and len(writes) >= REMEMBERED and write.after not in writes:
            raise Unknown(f"{name} no longer remembers whether {write.id} was written: look into its body", write)
        _fail_if_newer(name, met, fence, holder)
        write = write or Write(secrets.token_hex(8), writes[0] if writes else None)
        body = change(met.body if met else None)
        new = Manifest(fence, holder, body, [write.id, *writes][:REMEMBERED])
        try:
            store.put(name, new.to_bytes(), version)
            return new
        except Moved:
            continue  # Compare again with what is there now. It may be this write, if something sent it twice.
        except Unknown as error:
            error.write = write
            raise
    raise Failed(f"{name} was written by somebody else {TRIES} times in a row: try again later")


def raise_fence(store, name, fence, holder):
    """Raises the fence without a change: what a new holder does first, so that the former one is refused from then
    on."""
    return commit(store, name, fence, holder, lambda body: body)


def create(store, prefix, fence, holder, name, data):
    """Puts an object that nobody can replace, under a name that begins with the fence, and gives that name.

    Names sort as their fences do; `newest` reads them. Raises Refused if the fence is another holder's, Failed if
    there is an object of this name with another content.
    """
    fence = parse(fence, holder)
    owner = f"{prefix}/{fence:015}/holder"
    if _created(store, owner, holder.encode()) != holder.encode():
        raise Refused(f"fence {fence} of holder {holder} is refused for {prefix}: fence {fence} is another holder's, "
                      f"says {owner}. Stop working")
    full = f"{prefix}/{fence:015}/{name}"
    if _created(store, full, data) != data:
        raise Failed(f"{full} is there with another content: take a new name for each object")
    return full


def newest(store, prefix):
    """The names of all objects that were made with the greatest fence, for readers where there is no manifest."""
    names = [name for name in store.names(prefix + "/") if not name.endswith("/holder")]
    fences = [name[len(prefix) + 1:].split("/", 1)[0] for name in names]
    return [name for name, fence in zip(names, fences) if fence == max(fences)]


def parse(fence, holder):
    """The fence as a number. Compared as text, 10 would come before 9."""
    if not re.fullmatch("[1-9][0-9]{0,14}", str(fence)):
        raise Invalid(f"fence {str(fence)[:40]!r} is none: pass what FENCEDLEASE_FENCE says, "
                      "a number from 1 to 999999999999999")
    if not re.fullmatch("[A-Za-z0-9._-]{1,63}", str(holder)):
        raise Invalid(f"holder {str(holder)[:80]!r} is none: pass what FENCEDLEASE_HOLDING says, "
                      '1 to 63 letters, digits, ".", "_" or "-"')
    return int(fence)


def _fail_if_newer(name, met, fence, holder):
    if met and (met.fence > fence or (met.fence == fence and met.holder != holder)):
        raise Refused(f"fence {fence} of holder {holder} is refused for {name}: "
                      f"fence {met.fence} of holder {met.holder} was here. Stop working")


def _created(store, name, data):
    """What lies there in the end: `data`, or what was there before."""
    try:
        store.put(name, data, None)
        return data
    except Moved:
        try:
            found = store.read(name)
        except Failed as error:
            # What is there may be what an earlier attempt has put.
            raise Unknown(f"{name} is there, with a content that is not known: {error}") from error
        if found is None:
            raise Failed(f"{name} was there and is gone: nothing here may be deleted while it is written") from None
        return found[0]


def _found(store, name):
    found = store.read(name)
    if found is None:
        return None, None
    data, version = found
    try:
        manifest = Manifest(**json.loads(data))
        parse(manifest.fence, manifest.holder)
        return manifest, version
    except (TypeError, ValueError) as error:
        raise Failed(f"{name} is no manifest ({error}): find out who wrote it, then restore it") from None

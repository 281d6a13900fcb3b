"""A witness in an S3 bucket: one object, replaced by conditional `PUT`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from modicum.core.extras import needing_extras
from modicum.ledger.proof.claims import CLAIM_BYTES_MAX
from modicum.storage.witness.heads import KnownHead, seconds_ahead, unreachable
from modicum.system.clock import refuse_skew, seconds

#: Maximum number of versions of the object that a new process reads.
VERSIONS_MAX: Final = 16
#: Maximum number of versions and deletions on a page.
PAGE: Final = 1000
#: Maximum number of pages until the versions are found.
PAGES_MAX: Final = 10
#: The codes of answers that are no failure, by operation.
_NONE: Final[Mapping[str, frozenset[str]]] = {
    "get_object": frozenset({"NoSuchKey"}),
    "put_object": frozenset(
        {"PreconditionFailed", "ConditionalRequestConflict", "NoSuchKey"}
    ),
}
_SKEWED: Final = "RequestTimeTooSkewed"


class S3Witness:
    """An object with one line, and with earlier lines if the bucket keeps versions.

    The client is that of boto3: region, credentials and endpoint are those of its
    environment variables, files and roles.

    Args:
        bucket: The bucket.
        key: The object's key.

    Attributes:
        ahead: By how many seconds its clock was ahead of this machine's when it
            answered last; None before that.
    """

    def __init__(self, bucket: str, key: str) -> None:
        with needing_extras():
            import boto3  # noqa: F401 - only whether it is there
        self._place = {"Bucket": bucket, "Key": key}
        self._last: tuple[bytes | None, str] = None, ""  # Line and tag, as last read.
        self.ahead: float | None = None

    @property
    def name(self) -> str:
        """Return its URL."""
        return f"s3://{self._place['Bucket']}/{self._place['Key']}"

    @property
    def kind(self) -> str:
        """Return `s3`."""
        return "s3"

    def is_beside(self, ledger: str) -> bool:
        """Return False: where a bucket is stored is not known."""
        return False

    def latest(self) -> bytes | None:
        """Return the line; None if there is no object."""
        return self._found()[0]

    def kept(self) -> list[bytes]:
        """Return the lines of the newest versions, deleted ones included."""
        found: list[bytes] = []
        what: dict[str, object] = {
            "Bucket": self._place["Bucket"],
            "Prefix": self._place["Key"],
            "MaxKeys": PAGE,
        }
        for _ in range(PAGES_MAX):
            page = self._call("list_object_versions", what) or {}
            for one in page.get("Versions", ()):
                if one["Key"] == self._place["Key"] and len(found) < VERSIONS_MAX:
                    version = self._place | {"VersionId": one["VersionId"]}
                    answer = self._call("get_object", version)
                    if answer is not None:
                        found.append(self._read(answer)[0])
            if not page.get("IsTruncated") or len(found) == VERSIONS_MAX:
                return found
            what["KeyMarker"] = page["NextKeyMarker"]
            what["VersionIdMarker"] = page["NextVersionIdMarker"]
        raise unreachable(self.name, "its object was deleted too often")

    def replace(self, known: bytes | None, new: bytes) -> bool:
        """Put the line on the condition that the known one is there, and is lower."""
        last = self._last
        line, tag = last if last[0] == known else self._found()
        if line != known or (known is not None and self._seq(new) < self._seq(known)):
            return False
        condition = {"IfNoneMatch": "*"} if known is None else {"IfMatch": tag}
        put: dict[str, object] = {"Body": new, "ContentType": "application/json"}
        return self._call("put_object", self._place | put | condition) is not None

    def close(self) -> None:
        """Close the connections."""
        client = self.__dict__.pop("_client", None)
        if client is not None:
            client.close()

    def _seq(self, line: bytes) -> int:
        return KnownHead.read_line(line, self.name).seq

    def _found(self) -> tuple[bytes | None, str]:
        """Return the line, and its tag."""
        answer = self._call("get_object", self._place)
        found = (None, "") if answer is None else self._read(answer)
        self._last = found
        return found

    def _read(self, answer: Mapping[str, Any]) -> tuple[bytes, str]:
        line, tag = answer["Body"], answer.get("ETag", "")
        if len(line) != answer.get("ContentLength") or not tag.startswith('"'):
            raise unreachable(
                self.name, "it is cut off, too long, or has no strong ETag"
            )
        return line, tag

    def _call(
        self, operation: str, what: Mapping[str, object]
    ) -> dict[str, Any] | None:
        """Return the answer, its body as bytes; None if a condition does not hold."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            found: dict[str, Any] = getattr(self._client, operation)(**what)
            if "Body" in found:
                found["Body"] = found["Body"].read(CLAIM_BYTES_MAX + 1)
        except ClientError as error:
            self._note(error.response)
            code = error.response.get("Error", {}).get("Code", "")
            if code in _NONE.get(operation, ()):
                return None
            if code == _SKEWED and self.ahead is not None:
                own = seconds()
                refuse_skew(self.name, own, own + self.ahead)
            raise unreachable(self.name, f"it answered {code[:60]}") from None
        except (BotoCoreError, ValueError) as error:  # The latter, of a wrong endpoint.
            raise unreachable(self.name, type(error).__name__) from None
        self._note(found)
        return found

    def _note(self, answer: Mapping[str, Any]) -> None:
        headers = answer.get("ResponseMetadata", {}).get("HTTPHeaders", {})
        self.ahead = seconds_ahead(headers.get("date"), seconds())

    @cached_property
    def _client(self) -> Any:
        import boto3
        from botocore.config import Config

        retries = {"mode": "standard", "total_max_attempts": 2}
        config = Config(connect_timeout=3, read_timeout=5, retries=retries)
        return boto3.session.Session().client("s3", config=config)

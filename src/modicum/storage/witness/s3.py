"""A witness in an S3 bucket: one object, replaced by conditional `PUT`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from modicum.core.extras import needing_extras
from modicum.ledger.proof.claims import CLAIM_BYTES_MAX
from modicum.storage.witness.heads import KnownHead, behind, seconds_ahead, unreachable
from modicum.system.clock import seconds

#: Maximum number of versions of the object that a new process compares.
VERSIONS_MAX: Final = 16
_MISSING: Final = frozenset({"NoSuchKey", "404"})
_CHANGED: Final = frozenset({"PreconditionFailed", "ConditionalRequestConflict"})


class S3Witness:
    """An object with one line. If the bucket keeps versions, none may be higher.

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
        self._highest: int | None = None
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
        """Return the line; None if the object never existed.

        Raises:
            VerificationError: If a version of it that is kept has a higher entry.
        """
        highest = self._highest
        if highest is None:  # Before the line is read, which may be newer than these.
            highest = self._highest_kept()
        line = self._found()[0]
        if (0 if line is None else self._seq(line)) < highest:
            raise behind(
                f"the witness {self.name} had the entry {highest}, and was deleted or"
                " has an earlier one",
                "find out who changed it, and restore the version with this entry; or,"
                " if people agreed to continue after a loss, name a new object",
                self.name,
            )
        self._highest = highest
        return line

    def replace(self, known: bytes | None, new: bytes) -> bool:
        """Put the line on the condition that the known one is there, and is lower."""
        line, tag = self._last if self._last[0] == known else self._found()
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
        self._last = (None, "") if answer is None else self._read(answer)
        return self._last

    def _read(self, answer: Mapping[str, Any]) -> tuple[bytes, str]:
        line: bytes = answer["Body"]
        if len(line) > CLAIM_BYTES_MAX:
            raise unreachable(self.name, "it is too long")
        return line, answer["ETag"]

    def _highest_kept(self) -> int:
        """Return the highest entry of the last versions that are kept; 0 for none."""
        bucket, key = self._place["Bucket"], self._place["Key"]
        what: dict[str, object] = {
            "Bucket": bucket,
            "Prefix": key,
            "MaxKeys": VERSIONS_MAX,
        }
        highest = 0
        for one in (self._call("list_object_versions", what) or {}).get("Versions", ()):
            if one["Key"] == key:
                version = self._place | {"VersionId": one["VersionId"]}
                found = self._call("get_object", version)
                if found is not None:
                    highest = max(highest, self._seq(self._read(found)[0]))
        return highest

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
            code = error.response.get("Error", {}).get("Code", "")
            if code in _MISSING or code in _CHANGED:
                self._note(error.response)
                return None
            raise unreachable(self.name, f"it answered {code}") from None
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

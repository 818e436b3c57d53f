"""The rules of SPDX 2.3 (its specification, clauses 6 to 11, and its JSON schema) for documents such as ours, and of a document about a tarball.
Debian has no validator of SPDX 2.3."""

import hashlib
import re
import tarfile

ID = re.compile(r"SPDXRef-[A-Za-z0-9.-]+")
DIGITS = {"SHA1": 40, "SHA224": 56, "SHA256": 64, "SHA384": 96, "SHA512": 128, "MD5": 32}
LICENCES = {"MIT", "ISC", "CC0-1.0"}  # of the SPDX licence list, those that may be here
PURPOSES = set("APPLICATION FRAMEWORK LIBRARY CONTAINER OPERATING-SYSTEM DEVICE FIRMWARE SOURCE ARCHIVE FILE INSTALL OTHER".split())
CATEGORIES = {"SECURITY", "PACKAGE-MANAGER", "PERSISTENT-ID", "OTHER"}
RELATIONSHIPS = set(
    "DESCRIBES DESCRIBED_BY CONTAINS CONTAINED_BY DEPENDS_ON DEPENDENCY_OF DEPENDENCY_MANIFEST_OF BUILD_DEPENDENCY_OF DEV_DEPENDENCY_OF"
    " OPTIONAL_DEPENDENCY_OF PROVIDED_DEPENDENCY_OF TEST_DEPENDENCY_OF RUNTIME_DEPENDENCY_OF EXAMPLE_OF GENERATES GENERATED_FROM ANCESTOR_OF"
    " DESCENDANT_OF VARIANT_OF DISTRIBUTION_ARTIFACT PATCH_FOR PATCH_APPLIED COPY_OF FILE_ADDED FILE_DELETED FILE_MODIFIED"
    " EXPANDED_FROM_ARCHIVE DYNAMIC_LINK STATIC_LINK DATA_FILE_OF TEST_CASE_OF BUILD_TOOL_OF DEV_TOOL_OF TEST_OF TEST_TOOL_OF"
    " DOCUMENTATION_OF OPTIONAL_COMPONENT_OF METAFILE_OF PACKAGE_OF AMENDS PREREQUISITE_FOR HAS_PREREQUISITE REQUIREMENT_DESCRIPTION_FOR"
    " SPECIFICATION_FOR OTHER".split()
)
# name -> (must it be there?, type)
DOCUMENT = {
    "spdxVersion": (True, str), "dataLicense": (True, str), "SPDXID": (True, str), "name": (True, str), "documentNamespace": (True, str),
    "creationInfo": (True, dict), "packages": (True, list), "files": (True, list), "relationships": (True, list), "comment": (False, str),
}  # fmt: skip
CREATION = {"created": (True, str), "creators": (True, list), "comment": (False, str), "licenseListVersion": (False, str)}
PACKAGE = {
    "SPDXID": (True, str), "name": (True, str), "versionInfo": (False, str), "packageFileName": (False, str), "supplier": (True, str),
    "originator": (False, str), "downloadLocation": (True, str), "filesAnalyzed": (True, bool), "packageVerificationCode": (False, dict),
    "checksums": (False, list), "homepage": (False, str), "sourceInfo": (False, str), "licenseConcluded": (True, str),
    "licenseInfoFromFiles": (False, list), "licenseDeclared": (True, str), "copyrightText": (True, str), "summary": (False, str),
    "description": (False, str), "comment": (False, str), "externalRefs": (False, list), "primaryPackagePurpose": (False, str),
}  # fmt: skip
FILE = {
    "SPDXID": (True, str), "fileName": (True, str), "checksums": (True, list), "licenseConcluded": (True, str), "licenseInfoInFiles": (True, list),
    "copyrightText": (True, str), "fileTypes": (False, list), "comment": (False, str),
}  # fmt: skip
RELATIONSHIP = {"spdxElementId": (True, str), "relationshipType": (True, str), "relatedSpdxElement": (True, str), "comment": (False, str)}


def shape(what, value, fields):
    """Yields what is missing, of another type, empty, or not known."""
    if not isinstance(value, dict):
        yield f"{what} is no object"
        return
    for name, (needed, kind) in fields.items():
        if name not in value:
            if needed:
                yield f"{what} has no {name}"
        elif not isinstance(value[name], kind) or (kind is str and not value[name].strip()):
            yield f"{what}: {name} is {value[name]!r}"
    for name in value.keys() - fields.keys():
        yield f"{what} has {name}, which the schema does not know"


def licence(what, text):
    if text in ("NOASSERTION", "NONE"):
        return
    for word in re.sub(r"[()]", " ", text).split():
        if word not in ("AND", "OR", "WITH") and word not in LICENCES and not re.fullmatch(r"LicenseRef-[A-Za-z0-9.-]+", word):
            yield f"{what}: {word} is not in the list of licences"


def checksums(what, rows):
    for row in rows:
        if not isinstance(row, dict) or row.keys() != {"algorithm", "checksumValue"} or row["algorithm"] not in DIGITS:
            yield f"{what}: a checksum that is none: {row}"
        elif not re.fullmatch(f"[0-9a-f]{{{DIGITS[row['algorithm']]}}}", str(row["checksumValue"])):
            yield f"{what}: {row['algorithm']} does not have {DIGITS[row['algorithm']]} hexadecimal digits"


def of_the_package(what, package, contained):
    yield from shape(what, package, PACKAGE)
    for name in ("licenseConcluded", "licenseDeclared"):
        yield from licence(f"{what}, {name}", package.get(name, "NONE"))
    yield from checksums(what, package.get("checksums", []))
    if not re.fullmatch(r"(Person|Organization): \S.*|NOASSERTION", package.get("supplier", "")):
        yield f"{what}: a supplier is a Person: or an Organization:"
    if not re.fullmatch(r"NOASSERTION|NONE|[a-z+]+://[^\s#]+", package.get("downloadLocation", "")):
        yield f"{what}: {package.get('downloadLocation')} is no download location"
    if package.get("primaryPackagePurpose", "OTHER") not in PURPOSES:
        yield f"{what}: {package['primaryPackagePurpose']} is no purpose"
    for row in package.get("externalRefs", []):
        if row.get("referenceCategory") not in CATEGORIES or not row.get("referenceType") or not row.get("referenceLocator"):
            yield f"{what}: an external reference that is none: {row}"
        elif row["referenceType"] == "purl" and not re.fullmatch(r"pkg:[a-z]+/[\w.%-]+(/[\w.%-]+)*(@[\w.%+-]+)?", row["referenceLocator"]):
            yield f"{what}: {row['referenceLocator']} is no purl"
    if package.get("filesAnalyzed") is False:
        for name in ("packageVerificationCode", "licenseInfoFromFiles"):
            if name in package:
                yield f"{what}: its files were not analyzed, and it has {name}"
        if contained:
            yield f"{what}: its files were not analyzed, and it contains some"
        return
    hashes = sorted(row["checksumValue"] for file in contained for row in file["checksums"] if row["algorithm"] == "SHA1")
    code = hashlib.sha1("".join(hashes).encode()).hexdigest()
    if package.get("packageVerificationCode", {}).get("packageVerificationCodeValue") != code:
        yield f"{what}: the verification code of its files is {code}"
    if not package.get("licenseInfoFromFiles"):
        yield f"{what}: its files were analyzed, and it has no licenseInfoFromFiles"


def of_the_file(what, file):
    yield from shape(what, file, FILE)
    if not str(file.get("fileName", "")).startswith("./"):
        yield f"{what}: its name does not begin with ./"
    yield from licence(f"{what}, licenseConcluded", file.get("licenseConcluded", "NONE"))
    for one in file.get("licenseInfoInFiles", []):
        yield from licence(f"{what}, licenseInfoInFiles", one)
    yield from checksums(what, file.get("checksums", []))
    if "SHA1" not in [row.get("algorithm") for row in file.get("checksums", []) if isinstance(row, dict)]:
        yield f"{what}: has no SHA1, which each file must have"


def faults(document):
    """What of a document is not as SPDX 2.3 wants it."""
    found = list(shape("the document", document, DOCUMENT))
    if found:
        return found
    for name, value in (("spdxVersion", "SPDX-2.3"), ("dataLicense", "CC0-1.0"), ("SPDXID", "SPDXRef-DOCUMENT")):
        if document[name] != value:
            found.append(f"{name} is not {value}")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s#]+", document["documentNamespace"]):
        found.append("documentNamespace is no absolute URI without a fragment")
    found += shape("creationInfo", document["creationInfo"], CREATION)
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", document["creationInfo"].get("created", "")):
        found.append("created is not of the form 2026-11-22T12:00:00Z")
    creators = document["creationInfo"].get("creators", [])
    if not creators or not all(re.fullmatch(r"(Person|Organization|Tool): \S.*", one) for one in creators):
        found.append("a creator is a Person:, an Organization: or a Tool:")
    elements = [one.get("SPDXID", "") for one in document["packages"] + document["files"]]
    for one in elements:
        if not ID.fullmatch(one):
            found.append(f"{one!r} is no SPDXID")
    if len(set(elements)) != len(elements):
        found.append("two elements have one SPDXID")
    known = set(elements) | {"SPDXRef-DOCUMENT", "NONE", "NOASSERTION"}
    contains = {}
    for row in document["relationships"]:
        found += shape("a relationship", row, RELATIONSHIP)
        if row.get("relationshipType") not in RELATIONSHIPS:
            found.append(f"{row.get('relationshipType')} is no relationship")
        for end in ("spdxElementId", "relatedSpdxElement"):
            if row.get(end) not in known:
                found.append(f"a relationship names {row.get(end)}, which is not in the document")
        if row.get("relationshipType") == "CONTAINS":
            contains.setdefault(row["spdxElementId"], set()).add(row["relatedSpdxElement"])
    described = [row for row in document["relationships"] if row.get("relationshipType") == "DESCRIBES" and row.get("spdxElementId") == "SPDXRef-DOCUMENT"]
    if not described:
        found.append("the document describes nothing")
    for number, file in enumerate(document["files"]):
        found += of_the_file(str(file.get("fileName", f"file {number}")), file)
    if not found:
        for package in document["packages"]:
            inside = [file for file in document["files"] if file["SPDXID"] in contains.get(package["SPDXID"], ())]
            found += of_the_package(f"package {package['name']}", package, inside)
        lonely = [file["fileName"] for file in document["files"] if not any(file["SPDXID"] in files for files in contains.values())]
        found += [f"no package contains {name}" for name in lonely]
    return found


def of_the_tarball(document, path):
    """What a document says of a tarball that is not so."""
    found = []
    listed = {file["fileName"]: {row["algorithm"]: row["checksumValue"] for row in file["checksums"]} for file in document["files"]}
    with tarfile.open(path) as tar:
        packed = {"./" + one.name.split("/", 1)[1]: tar.extractfile(one).read() for one in tar.getmembers() if one.isfile()}
    for name in sorted(listed.keys() ^ packed.keys()):
        found.append(f"{name} is in one of document and tarball")
    for name in sorted(listed.keys() & packed.keys()):
        for algorithm, digest in listed[name].items():
            if hashlib.new(algorithm.lower(), packed[name]).hexdigest() != digest:
                found.append(f"{name} has another {algorithm}")
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    netcode = next((one for one in document["packages"] if one["name"] == "netcode"), {})
    if {"algorithm": "SHA256", "checksumValue": digest} not in netcode.get("checksums", []):
        found.append("the tarball has another SHA256")
    return found

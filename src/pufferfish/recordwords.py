# SPDX-License-Identifier: Apache-2.0
"""What a public record says, sentence by sentence, for readers who know nothing of the package."""

NOTICE = (
    "PUBLIC. What those who receive the released data may know of how they were made. It holds no "
    "count, no prior, no path and no digest; the plan and the ledger are private. It is a "
    "statement by whoever released the data, not a proof."
)
PROMISE = (
    "Whatever is released for a {whom}, its chance is the same for both secrets of a pair up to a "
    "factor of e**epsilon: nobody learns more than that about which of the two the {whom} has."
)
BESIDE = (
    "epsilon is for this release together with the other releases of the same rows that were "
    "taken into account."
)
CERTIFIED = (
    "When the plan was made its privacy loss was proved to be at most epsilon, by code that shares "
    "nothing with the code that made it; whoever has the plan and the prior can prove it again "
    "(pufferfish verify)."
)
CERTIFIED_BESIDE = (
    "When the plan was made it was proved that the joint loss of this release and the others "
    "that were taken into account ({out}) is at most epsilon. Whoever has the plan and the prior "
    "can prove again that the loss of this release alone is (pufferfish verify); that does not "
    "judge the joint loss."
)
PRIOR = (
    "The promise is against those whose prior (what they know beforehand of how the column depends "
    "on the secret) is one of the priors that were taken into account; these are taken as public "
    "knowledge."
)
FROM_ROWS = (
    "A prior was counted from rows of a table, and the {what} was computed from it, so that it "
    "depends on every one of these rows: from the {what} somebody who knows all rows but one may "
    "learn the secret of that one. "
)
HIDDEN = "That is why the {what} is not in this record."
PUBLISHED = "It is in this record because whoever released the data decided so."
INDEPENDENT = "Rows are independent of one another given the prior, and each is its own person."
UNITS = (
    "The rows with the same {unit!r} are one person's, and the promise is for all of them "
    "together; persons are independent of one another given the prior."
)
HOW_MANY = "How many rows a person has shows to whoever can tell whose they are."
REGION = "The prior need not be exact: the promise holds for all priors in a region around it ({})."
NO_SUM = (
    "Losses of several releases about the same people do not add up; two releases that each keep "
    "a promise may together break any."
)
NO_PAIR = (
    "Rows whose secret is in none of the pairs are released like the others, and nothing is "
    "promised for them."
)
LEFT_OUT = (
    "Rows without a value are left out; that they are missing shows, and no mechanism covers it."
)
CLAMPED = (
    "A value that the prior holds impossible is moved to the nearest possible one first; nothing "
    "is promised for such a row."
)
MAY_CLAMP = (
    "Values that the prior holds impossible may have been moved to the nearest possible one first; "
    "nothing is promised for such a row."
)

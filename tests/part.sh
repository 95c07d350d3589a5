#!/bin/sh
# Runs a command with one of seven parts of all tests, by the day of the week: part.sh COMMAND…
#
# The seven parts together are all tests. FLEDGE_TEST_PART=2/7 selects a part, and 1/1 all tests.
export FLEDGE_TEST_ALL=1 FLEDGE_TEST_PART="${FLEDGE_TEST_PART:-$(date +%u)/7}"
echo "FLEDGE_TEST_PART=$FLEDGE_TEST_PART"
exec "$@"

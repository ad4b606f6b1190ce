"""Writing c1 files: upstream's own bytes come back."""

import pytest

from cuzk.sector.porep.c1_reader import read_c1
from cuzk.sector.porep.c1_writer import encode_c1
from tests.sector.porep.documents import CASES, MADE_UP, POREP


@pytest.mark.parametrize("file", CASES)
def test_what_is_read_from_upstreams_files_is_written_as_the_same_bytes(file):
    assert encode_c1(read_c1(POREP / file, registered=MADE_UP.get(file))) == (POREP / file).read_bytes()

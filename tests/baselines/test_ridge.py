from tests.contract import Contract
from wscpml.baselines.ridge import KernelRidge


class TestKernelRidge(Contract):
    method = KernelRidge()

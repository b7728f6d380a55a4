from tests.contract import Contract
from wscpml.methods.ridge import KernelRidge


class TestKernelRidge(Contract):
    method = KernelRidge()

from psem_check.terms import Rejected
def check_proof(graph, facts, proof): raise Rejected("todo")

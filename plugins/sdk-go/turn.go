package vmhost

// From a call of the host to the policy's function for it.

// The kinds of keys that are no objects of a cluster.
var (
	admission  = Kind{Group: "vmhost", Version: "v1", Kind: "Admission"}
	conversion = Kind{Group: "vmhost", Version: "v1", Kind: "Conversion"}
)

// Turn calls the policy as the host does: a review goes to Admit, a batch of objects to Convert,
// all else to Reconcile.
func (p Policy) Turn(request *Request) (Outcome, error) {
	switch request.Key.Kind {
	case admission:
		return p.admission(request)
	case conversion:
		return p.conversion(request)
	}
	if p.Reconcile == nil {
		return Outcome{}, errNoReconcile
	}
	return p.Reconcile(request)
}

// admission returns the verdict as an effect. A failure is no verdict: the webhook's failure policy
// decides about the request.
func (p Policy) admission(request *Request) (Outcome, error) {
	if p.Admit == nil {
		return Outcome{}, errNoAdmit
	}
	review, err := ReviewOf(request.Controller, request.Object)
	if err != nil {
		return Outcome{}, err
	}
	verdict, err := p.Admit(review)
	if err != nil {
		return Outcome{}, err
	}
	return AwaitChange(Other{Name: "admission", Body: verdict}), nil
}

// conversion returns the objects as an effect. A failure is an answer, whose text the API server
// hands to the client.
func (p Policy) conversion(request *Request) (Outcome, error) {
	batch, err := BatchOf(request.Controller, request.Object)
	if err != nil {
		return Outcome{}, err
	}
	if p.Convert == nil {
		return AwaitChange(Other{Name: "conversion", Body: answerOf(nil, errNoConvert)}), nil
	}
	return AwaitChange(Other{Name: "conversion", Body: answerOf(p.Convert(batch))}), nil
}

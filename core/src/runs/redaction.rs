//! Takes sensitive values out of a plan's JSON, by the marks that terraform put there. Pure.
//!
//! Fails closed: a mark that does not fit its value hides the whole value.

use serde_json::{Map, Value};

/// What stands in the place of a sensitive value.
pub const MASK: &str = "(sensitive value)";

/// Which mark belongs to which value, in one object.
const PAIRS: [(&str, &str); 5] = [
    ("before", "before_sensitive"),
    ("after", "after_sensitive"),
    ("values", "sensitive_values"),
    ("config_values", "sensitive_config_values"),
    ("value", "sensitive"),
];

/// Replaces every sensitive value of `terraform show -json <plan>`.
///
/// `secret_variables` are the names that the control plane knows to be secret, whatever the configuration says.
pub fn redact_plan(plan: &mut Value, secret_variables: &[&str]) {
    let declared = declared_sensitive(plan);
    if let Some(Value::Object(variables)) = plan.get_mut("variables") {
        for (name, variable) in variables {
            if secret_variables.contains(&name.as_str()) || declared.contains(name) {
                mask_key(variable, "value");
            }
        }
    }
    if let Some(configuration) = plan.get_mut("configuration") {
        redact_configuration(configuration);
    }
    redact_marked(plan);
}

fn declared_sensitive(plan: &Value) -> Vec<String> {
    let variables = plan.pointer("/configuration/root_module/variables").and_then(Value::as_object);
    variables
        .into_iter()
        .flatten()
        .filter(|(_, variable)| is_true(variable.get("sensitive")))
        .map(|(name, _)| name.clone())
        .collect()
}

/// Literals in provider blocks are often credentials; a sensitive variable's default is one.
fn redact_configuration(value: &mut Value) {
    match value {
        Value::Object(object) => {
            if is_true(object.get("sensitive")) && object.contains_key("default") {
                object.insert("default".into(), MASK.into());
            }
            if let Some(providers) = object.get_mut("provider_config") {
                mask_constants(providers);
            }
            object.values_mut().for_each(redact_configuration);
        }
        Value::Array(items) => items.iter_mut().for_each(redact_configuration),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn mask_constants(value: &mut Value) {
    match value {
        Value::Object(object) => {
            mask_in(object, "constant_value");
            object.values_mut().for_each(mask_constants);
        }
        Value::Array(items) => items.iter_mut().for_each(mask_constants),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn redact_marked(value: &mut Value) {
    match value {
        Value::Object(object) => {
            let mut marked = Vec::new();
            for (name, mark) in PAIRS {
                if let Some(found) = object.get(mark).cloned() {
                    if let Some(value) = object.get_mut(name) {
                        redact(value, &found);
                    }
                    marked.extend([name, mark]);
                }
            }
            for (name, inner) in object.iter_mut() {
                // Inside marked values, keys are the provider's: a `sensitive` there is no mark.
                if !marked.contains(&name.as_str()) {
                    redact_marked(inner);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(redact_marked),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn redact(value: &mut Value, mark: &Value) {
    match (value, mark) {
        (_, Value::Bool(false) | Value::Null) | (Value::Null, Value::Object(_) | Value::Array(_)) => {}
        (Value::Object(values), Value::Object(marks)) => {
            for (name, mark) in marks {
                if let Some(value) = values.get_mut(name) {
                    redact(value, mark);
                }
            }
        }
        (Value::Array(values), Value::Array(marks)) => {
            for (value, mark) in values.iter_mut().zip(marks) {
                redact(value, mark);
            }
        }
        (value, mark) if has_mark(mark) => *value = MASK.into(),
        _ => {}
    }
}

/// Whether anything below is marked. Unmarked parts are left out or empty.
fn has_mark(mark: &Value) -> bool {
    match mark {
        Value::Bool(marked) => *marked,
        Value::Object(marks) => marks.values().any(has_mark),
        Value::Array(marks) => marks.iter().any(has_mark),
        Value::Null => false,
        Value::Number(_) | Value::String(_) => true,
    }
}

fn is_true(value: Option<&Value>) -> bool {
    value.and_then(Value::as_bool).unwrap_or(false)
}

fn mask_key(value: &mut Value, name: &str) {
    if let Value::Object(object) = value {
        mask_in(object, name);
    }
}

fn mask_in(object: &mut Map<String, Value>, name: &str) {
    if let Some(value) = object.get_mut(name) {
        *value = MASK.into();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn redacted(mut plan: Value) -> Value {
        redact_plan(&mut plan, &["told"]);
        plan
    }

    #[test]
    fn changes_are_redacted_by_their_marks() {
        let plan = redacted(json!({"resource_changes": [{"change": {
            "before": {"password": "old", "name": "n", "list": [{"k": "s"}, {"k": "t"}]},
            "before_sensitive": {"password": true, "list": [{"k": true}, {}]},
            "after": {"password": "new", "name": "n"}, "after_sensitive": true,
        }}]}));
        assert_eq!(
            plan["resource_changes"][0]["change"]["before"],
            json!({"password": MASK, "name": "n", "list": [{"k": MASK}, {"k": "t"}]})
        );
        assert_eq!(plan["resource_changes"][0]["change"]["after"], MASK);
    }

    #[test]
    fn state_values_and_outputs_are_redacted_at_every_depth() {
        let module = json!({
            "outputs": {"o": {"sensitive": true, "value": {"a": 1}}, "p": {"sensitive": false, "value": 2}},
            "root_module": {"child_modules": [{"resources": [
                {"values": {"t": "s", "u": "v"}, "sensitive_values": {"t": true}}
            ]}]},
        });
        let plan = redacted(json!({"planned_values": module, "prior_state": {"values": module}}));
        for values in [&plan["planned_values"], &plan["prior_state"]["values"]] {
            assert_eq!(values["outputs"]["o"]["value"], MASK);
            assert_eq!(values["outputs"]["p"]["value"], 2);
            assert_eq!(
                values["root_module"]["child_modules"][0]["resources"][0]["values"],
                json!({"t": MASK, "u": "v"})
            );
        }
    }

    #[test]
    fn secret_variables_and_provider_literals_are_redacted() {
        let plan = redacted(json!({
            "variables": {"told": {"value": 1}, "declared": {"value": 2}, "open": {"value": 3}},
            "configuration": {
                "provider_config": {"x": {"expressions": {"token": {"constant_value": "t"}}}},
                "root_module": {"variables": {"declared": {"sensitive": true, "default": "d"}, "open": {"default": 3}}},
            },
        }));
        assert_eq!(
            plan["variables"],
            json!({"told": {"value": MASK}, "declared": {"value": MASK}, "open": {"value": 3}})
        );
        let configuration = &plan["configuration"];
        assert_eq!(configuration["provider_config"]["x"]["expressions"]["token"]["constant_value"], MASK);
        assert_eq!(configuration["root_module"]["variables"]["declared"]["default"], MASK);
        assert_eq!(configuration["root_module"]["variables"]["open"]["default"], 3);
    }

    #[test]
    fn a_mark_that_does_not_fit_hides_the_whole_value() {
        let mut value = json!("text");
        redact(&mut value, &json!({"inner": true}));
        assert_eq!(value, MASK);
        let mut unmarked = json!("text");
        redact(&mut unmarked, &json!({"inner": false}));
        assert_eq!(unmarked, "text");
    }
}

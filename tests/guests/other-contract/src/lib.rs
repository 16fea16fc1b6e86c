//! A component with a contract other than vmhost's.

wit_bindgen::generate!({
    inline: r#"
        package someone:greetings@2.0.0;

        interface greeter {
            greet: func(name: string) -> string;
        }

        world app {
            export greeter;
        }
    "#,
    world: "app",
});

struct OtherContract;

impl exports::someone::greetings::greeter::Guest for OtherContract {
    fn greet(name: String) -> String {
        format!("hello {name}")
    }
}

export!(OtherContract);
